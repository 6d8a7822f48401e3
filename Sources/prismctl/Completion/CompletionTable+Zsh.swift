import PrismBase

extension CompletionTable {
  var zsh: String {
    let functions = stems.reversed().map(zshFunction)
    return """
      #compdef prismctl
      # zsh completion for prismctl, made by `prismctl completion zsh`.

      \(functions.joined(separator: "\n\n"))

      if [[ $funcstack[1] == _prismctl ]]; then _prismctl "$@"; else compdef _prismctl prismctl; fi
      """
  }

  /// `_prismctl`, and one more for each first word of commands of two.
  private func zshFunction(_ stem: [String]) -> String {
    let words = next(after: stem).map { "    \(Self.quoted("\($0.word):\($0.summary)"))" }
    let cases = next(after: stem).map { word, _ -> String in
      let path = stem + [word]
      guard let command = commands.first(where: { $0.words == path }) else {
        return "    \(word)) \(Self.zshName(path)) ;;"
      }
      let arguments = (zshOptions(options(of: command)) + zshOperands(command)).map { "      \($0)" }
      return "    \(word)) _arguments \\\n\(arguments.joined(separator: " \\\n")) ;;"
    }
    let globals = stem.isEmpty ? zshOptions(Self.leading).map { "\($0) " }.joined() : ""
    return """
      \(Self.zshName(stem))() {
        local -a found
        local curcontext=$curcontext state line
        _arguments -C \(globals)'1: :->word' '*:: :->rest'
        found=(
      \(words.joined(separator: "\n"))
        )
        case $state in
          word) _describe command found ;;
          rest) case $words[1] in
      \(cases.joined(separator: "\n"))
          esac ;;
        esac
      }
      """
  }

  private func zshOptions(_ options: [Command.Option]) -> [String] {
    options.map { option in
      let help = option.help.replacing("[", with: "(").replacing("]", with: ")").replacing(":", with: "\\:")
      guard let value = option.value else { return Self.quoted("\(option.name)[\(help)]") }
      let name = value.replacing(":", with: "\\:")
      if option.presence != .required { return Self.quoted("\(option.name)=-[\(help)]::\(name):") }
      return Self.quoted("\(option.name)=[\(help)]:\(name):\(Self.zshAction(Value(placeholder: value)))")
    }
  }

  private func zshOperands(_ command: Command) -> [String] {
    command.operands.map { operand in
      let isOptional = operand.hasPrefix("[")
      let name = operand.filter { $0 != "[" && $0 != "]" }
      let action = Self.zshAction(Value(placeholder: operand))
      return Self.quoted("\(isOptional ? "::" : ":")\(name):\(action)")
    }
  }

  private static func zshAction(_ value: Value) -> String {
    switch value {
    case .file: "_files"
    case .folder: "_files -/"
    case .keyFile: #"_files -g "*.key""#
    case .names(let kind):
      "{ local -a names=(${(f)\"$(prismctl __complete \(kind) ${(z)LBUFFER} 2>/dev/null)\"}); "
        + "compadd -a names }"
    case .words(let words): "(\(words.joined(separator: " ")))"
    case .free: " "
    }
  }

  private static func zshName(_ stem: [String]) -> String { (["_prismctl"] + stem).joined(separator: "_") }
  private static func quoted(_ text: String) -> String { "'\(text.replacing("'", with: "'\\''"))'" }
}
