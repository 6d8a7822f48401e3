/// A shell's completion: it asks `prismctl __complete` what may follow the words before the cursor, and shows the answer.
/// The program of the line itself is asked, so that a completion never differs from its program.
enum ShellCompletion: String, CaseIterable {
  case bash, zsh, fish

  var script: String {
    let head = "\(rawValue) completion for prismctl, made by `prismctl completion \(rawValue)`."
    return switch self {
    case .bash: "# \(head)\n\(Self.bashScript)"
    case .zsh: "#compdef prismctl\n# \(head)\n\(Self.zshScript)"
    case .fish: "# \(head)\n\(Self.fishScript)"
    }
  }

  /// For bash alone: the package bash-completion loads it, but it calls nothing of it. Bash splits words at a `=` too.
  private static let bashScript = #"""
    _prismctl() {
      local word=${COMP_WORDS[COMP_CWORD]} found
      [[ $word == "=" ]] && word=""
      mapfile -t found < <("${COMP_WORDS[0]}" __complete "${COMP_WORDS[@]:1:COMP_CWORD-1}" "$word" 2>/dev/null)
      case ${found[0]} in
        :files) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
        :folders) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -d -- "$word") ;;
        :keys)
          compopt -o filenames
          mapfile -t COMPREPLY < <(compgen -f -X '!*.key' -- "$word"; compgen -d -- "$word") ;;
        *) mapfile -t COMPREPLY < <(compgen -W "${found[*]%%$'\t'*}" -- "$word") ;;
      esac
    }
    complete -F _prismctl prismctl
    """#

  private static let zshScript = #"""
    _prismctl() {
      local -a before=("${(@)words[2,CURRENT-1]}") found
      [[ $PREFIX == --*=* ]] && { before+=("${PREFIX%%=*}"); compset -P '*='; }
      found=("${(@f)$($words[1] __complete "${(@)before}" "$PREFIX" 2>/dev/null)}")
      case $found[1] in
        :files) _files ;;
        :folders) _files -/ ;;
        :keys) _files -g '*.key' ;;
        '') ;;
        *) found=("${(@)${(@)found//:/\\:}/$'\t'/:}"); _describe prismctl found ;;
      esac
    }

    if [[ $funcstack[1] == _prismctl ]]; then _prismctl "$@"; else compdef _prismctl prismctl; fi
    """#

  private static let fishScript = #"""
    function __prismctl_complete
        set -l words (commandline -opc)
        set -l found (command $words[1] __complete $words[2..] (commandline -ct) 2>/dev/null)
        switch "$found[1]"
            case :files
                __fish_complete_path (commandline -ct)
            case :folders
                __fish_complete_directories (commandline -ct)
            case :keys
                __fish_complete_path (commandline -ct) | string match -r '.*(?:[.]key|/)(?=\t?$)'
            case '*'
                printf '%s\n' $found
        end
    end

    complete -c prismctl -f -a '(__prismctl_complete)'
    """#
}

extension Command {
  static let completion = Command(
    words: ["completion"], summary: "print a shell's completion of these commands",
    operands: ["bash|zsh|fish"], sockets: [], example: "source <(prismctl completion bash)"
  ) { invocation throws(Failure) in
    let shell = invocation.operands[0]
    guard let completion = ShellCompletion(rawValue: shell) else {
      throw .usage("there is no completion for `\(shell)`, only for bash, zsh and fish")
    }
    print(completion.script)
  }
}
