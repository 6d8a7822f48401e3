import PrismBase

extension CompletionTable {
  var fish: String {
    let globals = Self.leading.map { "complete -c prismctl \(Self.fishOption($0))" }
    let words = stems.flatMap { stem in
      next(after: stem).map { word, summary in
        "complete -c prismctl -n '__prismctl_after \(stem.joined(separator: " "))' -a \(word) -d \(Self.quoted(summary))"
      }
    }
    return """
      # fish completion for prismctl, made by `prismctl completion fish`.

      # The words before the cursor, without options and their values.
      function __prismctl_words
          set -l words (commandline -opc)
          set -e words[1]
          while set -q words[1]
              switch $words[1]
                  case \(valuedOptions.map(\.name).joined(separator: " "))
                      set -e words[1]
                  case '-*'
                  case '*'
                      echo $words[1]
              end
              set -e words[1]
          end
      end

      # Exactly these words stand before the cursor.
      function __prismctl_after
          test (string join ' ' (__prismctl_words) '') = (string join ' ' $argv '')
      end

      # They begin with these words.
      function __prismctl_in
          string match -q -- (string join ' ' $argv '')'*' (string join ' ' (__prismctl_words) '')
      end

      # After the command comes this operand: its number from 0, then the command.
      function __prismctl_operand
          set -l place (math (count $argv) - 1 + $argv[1])
          __prismctl_in $argv[2..]; and test (count (__prismctl_words)) -eq $place
      end

      complete -c prismctl -f
      \((globals + words + commands.flatMap(fishLines)).joined(separator: "\n"))
      """
  }

  private func fishLines(_ command: Command) -> [String] {
    let options = command.allOptions.filter { !Self.leading.contains($0) }.map {
      "complete -c prismctl -n '__prismctl_in \(command.name)' \(Self.fishOption($0))"
    }
    let operands = command.operands.map { Self.fishValue(Value(placeholder: $0)) }
    let files = operands.contains { $0 == " -F" } ? ["complete -c prismctl -n '__prismctl_in \(command.name)' -F"] : []
    let words = operands.enumerated().filter { $0.element.hasPrefix(" -a") }.map { index, value in
      "complete -c prismctl -n '__prismctl_operand \(index) \(command.name)'\(value)"
    }
    return options + files + words
  }

  private static func fishOption(_ option: Command.Option) -> String {
    let value = option.value.map { fishValue(Value(placeholder: $0)) }
    // -x: a value, and no file in its place; -r -F: a value that is a file.
    let argument = value.map { $0 == " -F" ? " -r -F" : " -x\($0)" } ?? ""
    return "-l \(option.name.dropFirst(2))\(argument) -d \(quoted(option.help))"
  }

  private static func fishValue(_ value: Value) -> String {
    switch value {
    case .file: " -F"
    case .folder: " -a '(__fish_complete_directories)'"
    case .keyFile: #" -a '(__fish_complete_path (commandline -ct) | string match -r ".*(?:[.]key|/)(?=\t?\$)")'"#
    case .names(let kind): " -a '(command -q prismctl; and prismctl __complete \(kind) (commandline -opc) 2>/dev/null)'"
    case .words(let words): " -a '\(words.joined(separator: " "))'"
    case .free: ""
    }
  }

  private static func quoted(_ text: String) -> String {
    "'\(text.replacing("\\", with: "\\\\").replacing("'", with: "\\'"))'"
  }
}
