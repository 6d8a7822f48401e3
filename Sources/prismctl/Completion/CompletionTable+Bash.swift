import PrismBase

extension CompletionTable {
  /// For bash alone: the package bash-completion loads it, but it calls nothing of it.
  var bash: String {
    let valued = valuedOptions.map(\.name).joined(separator: " | ")
    let values = valuedOptions.compactMap { name, value in Self.bashReply(value).map { "    \(name)) \($0) ;;" } }
    let following = stems.map { stem in
      "    \"\(stem.joined(separator: " "))\") reply=\"\(next(after: stem).map(\.word).joined(separator: " "))\" ;;"
    }
    let whole = commands.flatMap(bashCases)
    return """
      # bash completion for prismctl, made by `prismctl completion bash`.
      _prismctl() {
        local word=${COMP_WORDS[COMP_CWORD]} option="" reply="" words=() i
        COMPREPLY=()
        # The words before the cursor, without options and their values. Bash splits words at a `=` too.
        for ((i = 1; i < COMP_CWORD; i++)); do
          case ${COMP_WORDS[i]} in
            \(valued))
              option=${COMP_WORDS[i]}
              [[ ${COMP_WORDS[i + 1]} == "=" ]] && ((i++))
              ((++i < COMP_CWORD)) && option="" ;;
            -* | "=") ;;
            *) words+=("${COMP_WORDS[i]}") ;;
          esac
        done
        [[ $word == "=" ]] && word=""
        case $option in
          "") ;;
      \(values.joined(separator: "\n"))
          *) return ;;
        esac
        [[ -n $option ]] && { mapfile -t COMPREPLY < <(compgen -W "$reply" -- "$word"); return; }
        case "${words[*]}" in
      \(following.joined(separator: "\n"))
      \(whole.joined(separator: "\n"))
        esac
        mapfile -t COMPREPLY < <(compgen -W "$reply" -- "$word")
      }
      complete -F _prismctl prismctl
      """
  }

  /// Options where the word begins with a dash, else what the command's next operand may be.
  private func bashCases(_ command: Command) -> [String] {
    let options = options(of: command).map(\.name).joined(separator: " ")
    let operands = command.operands.enumerated().compactMap { index, operand -> String? in
      guard let reply = Self.bashReply(Value(placeholder: operand)) else { return nil }
      return "        \(index + command.words.count)) \(reply) ;;"
    }
    var lines = ["    \"\(command.name)\" | \"\(command.name) \"*)"]
    lines.append("      if [[ $word == -* ]]; then reply=\"\(options)\"")
    if !operands.isEmpty { lines += ["      else case ${#words[@]} in"] + operands + ["      esac"] }
    return lines + ["      fi ;;"]
  }

  /// Sets `reply`, or answers by itself; nil where nothing can be said.
  private static func bashReply(_ value: Value) -> String? {
    switch value {
    case .file: "compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- \"$word\"); return"
    case .folder: "compopt -o filenames; mapfile -t COMPREPLY < <(compgen -d -- \"$word\"); return"
    case .keyFile:
      "compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -X '!*.key' -- \"$word\"; compgen -d -- \"$word\"); return"
    case .names(let kind): "reply=$(\"${COMP_WORDS[0]}\" __complete \(kind) \"${COMP_WORDS[@]:1}\" 2>/dev/null)"
    case .words(let words): "reply=\"\(words.joined(separator: " "))\""
    case .free: nil
    }
  }
}
