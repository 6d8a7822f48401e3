/// What the three shells' completions are generated from: the commands as `--help` has them, and nothing else.
struct CompletionTable {
  let commands: [Command]

  /// What a value may be, told by the placeholder that `--help` shows for it.
  enum Value: Hashable {
    case file
    case folder
    case words([String])
    /// Nobody can guess it.
    case free

    init(placeholder: String) {
      let name = placeholder.filter { $0 != "[" && $0 != "]" }
      switch name {
      case "FILE", "FILE|-", "PATH", "BODY": self = .file
      case "FOLDER": self = .folder
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

  /// The first words of commands of two words: none, `dead`, ….
  var stems: [[String]] {
    commands.reduce(into: [[]]) { stems, command in
      let stem = Array(command.words.dropLast())
      if !stems.contains(stem) { stems.append(stem) }
    }
  }

  func options(of command: Command) -> [Command.Option] { command.options + Invocation.commonOptions }

  /// Every option that takes a value. One name takes the same wherever it stands; a test holds the commands to that.
  var valuedOptions: [(name: String, value: Value)] {
    let all = Invocation.commonOptions + commands.flatMap(\.options)
    return all.reduce(into: []) { result, option in
      guard let value = option.value, !result.contains(where: { $0.name == option.name }) else { return }
      result.append((option.name, Value(placeholder: value)))
    }
  }
}
