/// A program with its commands: it reads a command line, and says what there is.
public struct Program: Sendable {
  /// Of every command.
  public static let help = ArgumentOption("--help", nil, "this text", shortName: "-h")
  private static let version = ArgumentOption("--version", nil, "print the version")
  private static let column = 29

  /// Its file's name.
  public let name: String
  /// Every command, in the order of the help.
  public let commands: [Command]
  /// The answer of `version`.
  private let version: String
  /// Its work without a command, in one line; nil: it does nothing without one.
  private let root: String?
  /// Those that may be given before a command's words; of a program that works without a command also after them.
  public let options: [ArgumentOption]
  /// The exit codes that other programs may rely on.
  public let exitCodes: [(code: Int32, meaning: String)]
  /// The last line of the help.
  private let note: String

  /// - Parameter version: the answer of `version`. - Parameter root: its work without a command, in one line.
  /// - Parameter options: may be given before a command's words; if there is a `root`, after them, too.
  /// - Parameter note: the last line of the help.
  public init(
    _ name: String, version: String, commands: [Command], root: String? = nil, options: [ArgumentOption],
    exitCodes: [(code: Int32, meaning: String)], note: String = ""
  ) {
    (self.name, self.version, self.commands, self.root) = (name, version, commands, root)
    (self.options, self.exitCodes, self.note) = (options + [Self.version, Self.help], exitCodes, note)
  }

  // MARK: The line

  /// Takes a command line apart. - Returns: nil: it asked for the help, the version or a completion, which is printed.
  /// - Throws: exit code 64, with a hint.
  /// - Parameter names: for a completion, the values that a placeholder can have.
  public func read(
    _ words: [String], names: @escaping (String) -> [String] = { _ in [] }
  ) throws(Failure) -> Invocation? {
    if words.first == "__complete" {
      for line in Suggestions(Array(words.dropFirst()), of: self, names: names).lines { print(line) }
      return nil
    }
    let places = bareWords(of: words)
    let path = places.map { words[$0] }
    let start = places.first ?? words.count
    let leading = try arguments(Array(words[..<start]), options, of: nil)
    if let word = leading.operands.first {
      throw .usage("\(ArgumentFault.unexpectedWord(word)) (see `\(name) --help`)")
    }
    if leading.contains(Self.version.name) || path.first == "version" { return said(version) }
    if leading.contains(Self.help.name) { return said(overview) }
    if path.first == "help" { return said(try explanation(of: Array(path.dropFirst()))) }
    if path.isEmpty {
      guard let root else { return try unfinished(overview, words) }
      let command = Command("", root, work: .later { _ in 0 })
      return Invocation(command: command, leading: leading, arguments: try arguments([], [], of: nil))
    }
    guard let command = command(of: path) else {
      guard let list = list(below: path) else { throw .usage(unknown(path)) }
      return try unfinished(list, words)
    }
    let own = Set(places.prefix(command.words.count))
    let rest = (start..<words.count).filter { !own.contains($0) }.map { words[$0] }
    let line = Invocation(
      command: command, leading: leading, arguments: try arguments(rest, options(of: command), of: command))
    if line.has(Self.help.name) { return said(help(of: command)) }
    try check(line.operands, of: command)
    return line
  }

  /// The one of the most words that `path` begins with.
  func command(of path: [String]) -> Command? {
    commands.filter { path.starts(with: $0.words) }.max { $0.words.count < $1.words.count }
  }

  /// Those that may be given after a command's words.
  func options(of command: Command) -> [ArgumentOption] {
    command.allOptions + (root == nil ? [] : options.dropLast(2))
  }

  /// Where the words are that are neither options nor values of options.
  private func bareWords(of words: [String]) -> [Int] {
    let options = options + commands.flatMap(\.allOptions)
    var (found, index): ([Int], Int) = ([], 0)
    while index < words.count, words[index] != "--" {
      defer { index += 1 }
      guard words[index].hasPrefix("-") else {
        found.append(index)
        continue
      }
      guard let option = options.first(where: { $0.name == words[index] }), option.value != nil else { continue }
      let isNext = index + 1 < words.count && !words[index + 1].hasPrefix("-")
      if option.presence == .required || option.presence == .optional && isNext { index += 1 }
    }
    return found
  }

  private func arguments(
    _ words: [String], _ options: [ArgumentOption], of command: Command?
  ) throws(Failure) -> Arguments {
    do throws(ArgumentFault) { return try Arguments(words, options: options, last: Self.help.name) } catch {
      var text = error.description
      if case .unknownOption(let option, let nearest) = error, let command {
        let others = nearest == nil && commands.contains { $0.allOptions.contains { $0.name == option } }
        let hint = nearest.map { "; did you mean `\($0)`?" } ?? ""
        text = "`\(command.name)` has no option `\(option)`\(others ? "; other commands have it" : "")\(hint)"
      }
      throw .usage("\(text) (see `\(name) \(command.map { "\($0.name) " } ?? "")--help`)")
    }
  }

  private func check(_ operands: [String], of command: Command) throws(Failure) {
    let required = command.operands.count { !$0.hasPrefix("[") }
    let most = command.operands.last?.hasSuffix("...]") == true ? Int.max : command.operands.count
    if operands.count < required {
      throw .usage("`\(command.name)` needs \(command.operands[operands.count]); usage: \(usage(of: command))")
    }
    guard operands.count > most else { return }
    let hint = command.example.map { "as in: \($0)" } ?? "usage: \(usage(of: command))"
    throw .usage("`\(operands[most])` belongs to no option of `\(command.name)`; \(hint)")
  }

  /// The message about words that no command begins with.
  private func unknown(_ path: [String]) -> String {
    let two = path.prefix(2).joined(separator: " ")
    let isPair = commands.contains { $0.words.count > 1 && $0.words[0] == path[0] }
    let nearest =
      NearestName.of(two, among: commands.map(\.name))
      ?? NearestName.of(path[0], among: commands.compactMap(\.words.first))
    let hint = nearest.map { "; did you mean `\(name) \($0)`?" } ?? ""
    return "there is no command `\(isPair ? two : path[0])`\(hint) (`\(name) help` lists them)"
  }

  // MARK: The help

  private func said(_ text: String) -> Invocation? {
    print(text)
    return nil
  }

  /// Only a part of a command was given. - Throws: 64, unless the help was asked for.
  private func unfinished(_ text: String, _ words: [String]) throws(Failure) -> Invocation? {
    print(text)
    guard words.contains(Self.help.name) || words.contains("-h") else { throw .usage("") }
    return nil
  }

  /// `help`, `help send`, `help dead`, `help dead list`.
  private func explanation(of path: [String]) throws(Failure) -> String {
    if path.isEmpty { return overview }
    if let command = commands.first(where: { $0.words == path }) { return help(of: command) }
    guard let list = list(below: path) else { throw .usage(unknown(path)) }
    return list
  }

  /// `prismctl dead show [OPTIONS] ID`
  public func usage(of command: Command) -> String {
    ([name] + command.words + (command.options.isEmpty ? [] : ["[OPTIONS]"]) + command.operands)
      .joined(separator: " ")
  }

  /// The help of a command.
  public func help(of command: Command) -> String {
    var parts = [command.summary, "usage: \(usage(of: command))"]
    if !command.details.isEmpty { parts.append(command.details) }
    parts.append(ArgumentOption.help(command.allOptions, column: Self.column))
    if root != nil { parts.append("The options of `\(name) --help` are options of it, too.") }
    if let example = command.example { parts.append("example: \(example)") }
    return parts.joined(separator: "\n\n")
  }

  /// nil: no command of more words begins with these.
  private func list(below path: [String]) -> String? {
    let found = commands.filter { $0.words.count > path.count && $0.words.starts(with: path) }
    guard let first = found.first else { return nil }
    let common = first.options.filter { option in found.allSatisfy { $0.options.contains(option) } }
    let options = common.isEmpty ? [] : [ArgumentOption.help(common, column: Self.column)]
    let parts = ["\(name) \(path.joined(separator: " ")) COMMAND", Self.table(found.map { ($0.line, $0.summary) })]
    return (parts + options + ["`\(name) help \(first.name)` explains one."]).joined(separator: "\n\n")
  }

  private var overview: String {
    [
      "\(root.map { "\(name) [OPTIONS]: \($0)\n" } ?? "")\(name) COMMAND [OPTIONS]",
      Self.table(commands.map { ($0.name, $0.summary) }), ArgumentOption.help(options, column: Self.column),
      "`\(name) help COMMAND` tells more. Exit codes (sysexits.h):\n"
        + Self.table(exitCodes.map { (String($0.code), $0.meaning) }, width: 4) + (note.isEmpty ? "" : "\n\(note)"),
    ].joined(separator: "\n\n")
  }

  private static func table(_ rows: [(name: String, text: String)], width: Int = 14) -> String {
    let width = rows.reduce(width) { max($0, $1.name.count) }
    return rows.map { row in
      "  \(row.name)\(String(repeating: " ", count: width + 1 - row.name.count))\(row.text)"
    }.joined(separator: "\n")
  }
}
