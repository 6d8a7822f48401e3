# Prints what zsh offers after a line, one word a line: complete.zsh COMPLETION LINE. The line is typed into a real zsh
# on a terminal of its own; what its completion would add is caught where every way of adding ends, in compadd.
zmodload zsh/zpty || exit 70
zpty shell 'PS1= TERM=dumb zsh -f -i'
zpty -w shell "
autoload -Uz compinit; compinit -u -D
source ${(q)1}
compadd() {
  local -a found
  if [[ \${@[(I)-[OAD]]} -gt 0 ]]; then builtin compadd \"\$@\"; return; fi
  builtin compadd -O found \"\$@\"
  print -rl -- OFFER:\${^found}
  builtin compadd \"\$@\"
}
setopt no_beep no_zle_bracketed_paste 2>/dev/null
zstyle ':completion:*' list-prompt ''; LISTMAX=1000; unsetopt auto_menu list_ambiguous
offer() { zle expand-or-complete; print -r -- OFFERED; }
zle -N offer; bindkey '^I' offer
print -r -- RE''ADY"
local text= chunk=
until [[ $text == *READY* ]]; do zpty -r shell chunk || exit 70; text+=$chunk; done
zpty -n -w shell "$2"$'\t'
text=
until [[ $text == *OFFERED* ]]; do zpty -r shell chunk || exit 70; text+=$chunk; done
zpty -d shell
print -r -- $text | tr -d '\r' | sed -n 's/.*OFFER:\([-a-z.]*\).*/\1/p' | sort -u
