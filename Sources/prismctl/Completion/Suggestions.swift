import Glibc
import PrismBase
import PrismControl
import PrismProtocol

/// The words that may follow those of a line, from the commands as `--help` shows them.
struct Suggestions {
  /// The kind of a value, by the placeholder that `--help` shows for it.
  enum Value: Hashable {
    case file
    case folder
    case words([String])
    /// A file whose name ends in `.key`, or a folder on the way to one.
    case keyFile
    case names(DaemonNames.Kind)
    /// A value that can't be completed.
    case free

    init(placeholder: String) {
      let name = placeholder.filter { $0 != "[" && $0 != "]" }
      switch name {
      case "FILE", "FILE|-", "PATH", "BODY": self = .file
      case "FOLDER", "DIR": self = .folder
      case "KEY-FILE": self = .keyFile
      case "NAMESPACE", "N": self = .names(.namespaces)
      case "TYPE", "T": self = .names(.types)
      case "REPORT_ID": self = .names(.reportIDs)
      case "ID": self = .names(.deadIDs)
      case _ where name.contains("|"): self = .words(name.split(separator: "|").map(String.init))
      default: self = .free
      }
    }
  }

  /// Those that may stand before the command.
  private static let leading = [Invocation.control, Invocation.ingest, Invocation.help]

  /// The words before the cursor, and the one under it.
  private let words: [String], current: String
  private let names: (DaemonNames.Kind) -> [String]

  /// - Parameter line: the words without the program's, the one under the cursor last; it may be empty.
  init(_ line: [String], names: @escaping (DaemonNames.Kind) -> [String]) {
    (words, current, self.names) = (Array(line.dropLast()), line.last ?? "", names)
  }

  /// A word each, with its meaning after a tab if there is one; or `:files`, `:folders` or `:keys` alone, which the shell
  /// finds by itself.
  @MainActor var lines: [String] {
    var (rest, before) = (words[...], [String]())
    while let word = rest.popFirst() {
      guard word.hasPrefix("-") else {
        if word != "=" { before.append(word) }
        continue
      }
      guard let value = Self.value(ofOption: word) else { continue }
      if rest.first == "=" { rest.removeFirst() }
      if rest.popFirst() == nil { return lines(of: value) }
    }
    if let equals = current.firstIndex(of: "="), let value = Self.value(ofOption: String(current[..<equals])) {
      return lines(of: value).map { current[...equals] + $0 }
    }
    let command = commands.filter { before.starts(with: $0.words) }.max { $0.words.count < $1.words.count }
    if current.hasPrefix("-") { return (command?.allOptions ?? Self.leading).map { "\($0.name)\t\($0.help)" } }
    guard let command else { return Self.next(after: before) }
    let operands = command.operands.dropFirst(before.count - command.words.count)
    return operands.first.map { lines(of: Value(placeholder: $0)) } ?? []
  }

  private func lines(of value: Value) -> [String] {
    switch value {
    case .file: [":files"]
    case .folder: [":folders"]
    case .keyFile: [":keys"]
    case .words(let words): words
    case .names(let kind): names(kind).map(\.printable)
    case .free: []
    }
  }

  /// An option that takes the next word has the same values in every command; a test holds the commands to that.
  @MainActor private static func value(ofOption name: String) -> Value? {
    let options = leading + commands.flatMap(\.allOptions)
    return options.first { $0.name == name && $0.presence == .required }?.value.map { Value(placeholder: $0) }
  }

  /// The words that may follow `words`: `dead` is followed by `list`, `show`, ….
  @MainActor private static func next(after words: [String]) -> [String] {
    let found = commands.filter { $0.words.count > words.count && $0.words.starts(with: words) }
    return found.reduce(into: [String]()) { result, command in
      let (word, path) = (command.words[words.count], Array(command.words.prefix(words.count + 1)))
      let others = found.filter { $0.words.starts(with: path) }.compactMap(\.words.last)
      let line = "\(word)\t\(command.words == path ? command.summary : others.joined(separator: ", "))"
      if !result.contains(line) { result.append(line) }
    }
  }
}

/// The names that a completion asks the daemon for; empty if it does not answer within 1 s.
struct DaemonNames {
  enum Kind { case namespaces, types, reportIDs, deadIDs }

  private static let reportsMax = 200

  /// The words before the cursor: they may name another control socket.
  let line: [String]

  func of(_ kind: Kind) -> [String] {
    switch kind {
    case .namespaces: namespaces
    case .types: types
    case .deadIDs: dead.map { String($0.id) }
    case .reportIDs: Array(Set(dead.map(\.reportId) + storedReports)).sorted()
    }
  }

  private var namespaces: [String] {
    var names: [String] = []
    ask(ControlRequest(.status)) { names = $0[Answers.status]?.namespaces.map(\.name) ?? [] }
    return names
  }

  /// Of every namespace's monitorList.
  private var types: [String] {
    var types: Set<String> = []
    ask(ControlRequest(.configShow)) { answer in
      guard let configuration = answer[Answers.configuration] else { return }
      for namespace in ConfigurationReport(controlJSON: configuration).namespaces {
        types.formUnion(namespace.value.monitorList.map(\.type))
      }
    }
    return types.sorted()
  }

  private var dead: [DeadLetterReport] {
    var letters: [DeadLetterReport] = []
    ask(ControlRequest(.deadList, [.init("after", .int(0))])) { letters = $0[Answers.dead] ?? [] }
    return letters
  }

  /// Of rows that wait, the oldest first.
  private var storedReports: [String] {
    var ids: [String] = []
    ask(ControlRequest(.export, [.init("kind", "meta")])) { answer throws(Failure) in
      if let id = answer[Answers.meta]?.reportID { ids.append(id) }
      if ids.count >= Self.reportsMax { throw Failure(Failure.no, "") }
    }
    return ids
  }

  private func ask(_ request: ControlRequest, _ onAnswer: (AnswerLine) throws(Failure) -> Void) {
    // A completion says nothing of what goes wrong: the command itself will.
    try? ControlConnection(path: path, timeoutSeconds: 1, isExact: true).ask(request, onAnswer)
  }

  private var path: String {
    for (index, word) in line.enumerated() {
      if word == "--control", index + 1 < line.count { return line[index + 1] }
      if word.hasPrefix("--control=") { return String(word.dropFirst("--control=".count)) }
    }
    return Invocation.usualControlSocket
  }
}
