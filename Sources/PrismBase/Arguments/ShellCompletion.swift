/// A shell's completion: it asks `PROGRAM __complete` what may follow the words before the cursor, and shows the answer. The
/// program of the line itself is asked, so that a completion never differs from its program.
public enum ShellCompletion: String, CaseIterable, Sendable {
  case bash, zsh, fish

  /// The text that the shell reads. - Parameter program: its name.
  public func script(of program: String) -> String {
    let head = "\(rawValue) completion for PROGRAM, made by `PROGRAM completion \(rawValue)`."
    let text =
      switch self {
      case .bash: "# \(head)\n\(Self.bashScript)"
      case .zsh: "#compdef PROGRAM\n# \(head)\n\(Self.zshScript)"
      case .fish: "# \(head)\n\(Self.fishScript)"
      }
    return text.replacing("_PROGRAM", with: "_" + program.replacing("-", with: "_")).replacing("PROGRAM", with: program)
  }

  /// For bash alone: the package bash-completion loads it, but it calls nothing of it. Bash splits words at a `=` too.
  private static let bashScript = #"""
    _PROGRAM() {
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
    complete -F _PROGRAM PROGRAM
    """#

  private static let zshScript = #"""
    _PROGRAM() {
      local -a before=("${(@)words[2,CURRENT-1]}") found
      [[ $PREFIX == --*=* ]] && { before+=("${PREFIX%%=*}"); compset -P '*='; }
      found=("${(@f)$($words[1] __complete "${(@)before}" "$PREFIX" 2>/dev/null)}")
      case $found[1] in
        :files) _files ;;
        :folders) _files -/ ;;
        :keys) _files -g '*.key' ;;
        '') ;;
        *) found=("${(@)${(@)found//:/\\:}/$'\t'/:}"); _describe PROGRAM found ;;
      esac
    }

    if [[ $funcstack[1] == _PROGRAM ]]; then _PROGRAM "$@"; else compdef _PROGRAM PROGRAM; fi
    """#

  private static let fishScript = #"""
    function __PROGRAM_complete
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

    complete -c PROGRAM -f -a '(__PROGRAM_complete)'
    """#
}

extension Command {
  /// Prints a completion of a program's commands.
  public static func completion(of program: String) -> Command {
    Command(
      "completion", "print a shell's completion of these commands", operands: ["bash|zsh|fish"],
      example: "source <(\(program) completion bash)",
      work: .early { line throws(Failure) in
        guard let completion = ShellCompletion(rawValue: line.operands[0]) else {
          throw .usage("there is no completion for `\(line.operands[0])`, only for bash, zsh and fish")
        }
        print(completion.script(of: program))
      })
  }
}
