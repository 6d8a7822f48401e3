/// The words that may follow those of a line, from the commands as the help shows them.
public struct Suggestions {
  /// The kind of a value, by the placeholder that the help shows for it.
  public enum Value: Hashable, Sendable {
    case file, folder
    /// A file whose name ends in `.key`, or a folder on the way to one.
    case keyFile
    case words([String])
    /// A value that the program may know, by its placeholder.
    case named(String)

    public init(placeholder: String) {
      let name = placeholder.filter { $0 != "[" && $0 != "]" }
      switch name {
      case "FILE", "FILE|-", "PATH", "BODY": self = .file
      case "FOLDER", "DIR": self = .folder
      case "KEY-FILE": self = .keyFile
      case _ where name.contains("|"): self = .words(name.split(separator: "|").map(String.init))
      default: self = .named(name)
      }
    }
  }

  private let program: Program
  /// The words before the cursor, and the one under it.
  private let words: [String], current: String
  private let names: (String) -> [String]

  /// - Parameter line: the words without the program's, the one under the cursor last; it may be empty.
  /// - Parameter names: the values that a placeholder can have; empty: they are not known.
  public init(_ line: [String], of program: Program, names: @escaping (String) -> [String] = { _ in [] }) {
    (self.program, self.names) = (program, names)
    (words, current) = (Array(line.dropLast()), line.last ?? "")
  }

  /// A word each, with its meaning after a tab if there is one; or `:files`, `:folders` or `:keys` alone, which the shell
  /// finds by itself.
  public var lines: [String] {
    var (rest, before) = (words[...], [String]())
    while let word = rest.popFirst() {
      guard word.hasPrefix("-") else {
        if word != "=" { before.append(word) }
        continue
      }
      guard let value = value(ofOption: word) else { continue }
      if rest.first == "=" { rest.removeFirst() }
      if rest.popFirst() == nil { return lines(of: value) }
    }
    if let equals = current.firstIndex(of: "="), let value = value(ofOption: String(current[..<equals])) {
      return lines(of: value).map { current[...equals] + $0 }
    }
    let command = program.command(of: before)
    if current.hasPrefix("-") {
      let options = command.map(program.options(of:)) ?? program.options
      return options.map { "\($0.name)\t\($0.help.replacing("\n", with: " "))" }
    }
    guard let command else { return next(after: before) }
    let operands = command.operands.dropFirst(before.count - command.words.count)
    return operands.first.map { lines(of: Value(placeholder: $0)) } ?? []
  }

  private func lines(of value: Value) -> [String] {
    switch value {
    case .file: [":files"]
    case .folder: [":folders"]
    case .keyFile: [":keys"]
    case .words(let words): words
    case .named(let placeholder): names(placeholder).map { OutputText.line($0) }
    }
  }

  /// An option that takes the next word has the same values in every command; a test holds the commands to that.
  private func value(ofOption name: String) -> Value? {
    let options = program.options + program.commands.flatMap(\.allOptions)
    return options.first { $0.name == name && $0.presence == .required }?.value.map { Value(placeholder: $0) }
  }

  /// The words that may follow `words`: `dead` is followed by `list`, `show`, ….
  private func next(after words: [String]) -> [String] {
    let found = program.commands.filter { $0.words.count > words.count && $0.words.starts(with: words) }
    return found.reduce(into: [String]()) { result, command in
      let (word, path) = (command.words[words.count], Array(command.words.prefix(words.count + 1)))
      let others = found.filter { $0.words.starts(with: path) }.compactMap(\.words.last)
      let line = "\(word)\t\(command.words == path ? command.summary : others.joined(separator: ", "))"
      if !result.contains(line) { result.append(line) }
    }
  }
}
