import PrismBase

/// The source of the three shells' completions: the commands as `--help` shows them, and nothing else.
struct CompletionTable {
  let commands: [Command]

  /// The kind of a value, by the placeholder that `--help` shows for it.
  enum Value: Hashable {
    case file
    case folder
    case words([String])
    /// A file whose name ends in `.key`, or a folder on the way to one.
    case keyFile
    /// Names that the daemon knows: `prismctl __complete KIND`.
    case names(String)
    /// A value that can't be completed.
    case free

    init(placeholder: String) {
      let name = placeholder.filter { $0 != "[" && $0 != "]" }
      switch name {
      case "FILE", "FILE|-", "PATH", "BODY": self = .file
      case "FOLDER", "DIR": self = .folder
      case "KEY-FILE": self = .keyFile
      case "NAMESPACE", "N": self = .names("namespaces")
      case "TYPE", "T": self = .names("types")
      case "REPORT_ID": self = .names("report-ids")
      case "ID": self = .names("dead-ids")
      case _ where name.contains("|"): self = .words(name.split(separator: "|").map(String.init))
      default: self = .free
      }
    }
  }

  /// The words that may follow `words`, each with what it is: `dead` is followed by `list`, `show`, ….
  func next(after words: [String]) -> [(word: String, summary: String)] {
    var result: [(word: String, summary: String)] = []
    for command in commands where command.words.count > words.count && command.words.starts(with: words) {
      let word = command.words[words.count]
      let isWhole = command.words.count == words.count + 1
      if result.contains(where: { $0.word == word }) { continue }
      let others = commands.filter { $0.words.starts(with: words + [word]) }.compactMap { $0.words.last }
      result.append((word, isWhole ? command.summary : others.joined(separator: ", ")))
    }
    return result
  }

  /// The first words of commands of two words: `dead`, `config`, `keys`.
  var stems: [[String]] {
    commands.reduce(into: [[]]) { stems, command in
      let stem = Array(command.words.dropLast())
      if !stems.contains(stem) { stems.append(stem) }
    }
  }

  /// Those that may stand before the command.
  static let leading = [Invocation.control, Invocation.ingest, Invocation.help]

  func options(of command: Command) -> [Command.Option] { command.allOptions }

  /// Every option that takes the next word as its value. An option takes the same values in every command; a test holds
  /// the commands to that.
  var valuedOptions: [(name: String, value: Value)] {
    let all = Self.leading + commands.flatMap(\.allOptions)
    return all.reduce(into: []) { result, option in
      guard let value = option.value, option.presence == .required, !result.contains(where: { $0.name == option.name })
      else { return }
      result.append((option.name, Value(placeholder: value)))
    }
  }
}
