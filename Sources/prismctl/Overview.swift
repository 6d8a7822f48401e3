import CArguments
import PrismBase
import PrismProtocol

/// Answers about commands as a whole: `help`, `version`, the first word of several commands, and an unknown word.
@MainActor
enum Overview {
  /// Prints what a line asks for that is no command. - Returns: false if it is one.
  /// - Throws: 64 where only a part of a command was given.
  static func answers(_ words: [String]) throws(Failure) -> Bool {
    switch words.first {
    case nil:
      print(text)
      throw Failure(Failure.usage, "")
    case "--help", "-h": print(text)
    case "--version", "version": print(PrismVersion.line(of: "prismctl", commit: String(cString: prism_commit())))
    case "help": try explain(Array(words.dropFirst()))
    case "__complete":
      let line = Array(words.dropFirst())
      for text in Suggestions(line, names: DaemonNames(line: line).of).lines { print(text) }
    default: return try isStem(words)
    }
    return true
  }

  /// `help`, `help send`, `help dead`, `help dead list`.
  private static func explain(_ words: [String]) throws(Failure) {
    if words.isEmpty { return print(text) }
    if let command = commands.first(where: { $0.words == words }) { return print(command.help) }
    guard let list = list(below: words) else { throw .usage(unknown(words)) }
    print(list)
  }

  /// `dead` alone, or with `--help`.
  private static func isStem(_ words: [String]) throws(Failure) -> Bool {
    let names = words.prefix { !$0.hasPrefix("-") }
    guard !commands.contains(where: { words.starts(with: $0.words) }), let list = list(below: Array(names)) else {
      return false
    }
    print(list)
    if !words.contains("--help") && !words.contains("-h") { throw Failure(Failure.usage, "") }
    return true
  }

  /// nil: no command of more words begins with these.
  private static func list(below words: [String]) -> String? {
    let found = commands.filter { $0.words.count > words.count && $0.words.starts(with: words) }
    guard !words.isEmpty, !found.isEmpty else { return nil }
    let lines = found.map { "  \($0.name.padded(14)) \($0.summary)" }
    let hint = "`prismctl help \(found[0].name)` explains one."
    return (["prismctl \(words.joined(separator: " ")) COMMAND", ""] + lines + ["", hint]).joined(separator: "\n")
  }

  /// The message about words that no command begins with.
  static func unknown(_ words: [String]) -> String {
    let names = words.prefix { !$0.hasPrefix("-") }
    let (one, two) = (names.first ?? words[0], names.prefix(2).joined(separator: " "))
    let isPair = commands.contains { $0.words.count > 1 && $0.words[0] == one }
    let nearest =
      NearestName.of(two, among: commands.map(\.name)) ?? NearestName.of(one, among: commands.compactMap(\.words.first))
    let hint = nearest.map { "; did you mean `prismctl \($0)`?" } ?? ""
    return "there is no command `\(isPair ? two : one)`\(hint) (`prismctl help` lists them)"
  }

  /// The exit codes that other programs may rely on (docs/man/prismctl.1).
  static let exitCodes: [(code: Int32, meaning: String)] = [
    (0, "done"), (Failure.no, "the answer is no: refused, not found, a fault found"),
    (Failure.usage, "the command line"), (Failure.data, "a file holds what can't be sent"),
    (Failure.noInput, "a file can't be read"), (Failure.unavailable, "the daemon does not answer"),
    (Failure.software, "the answer can't be understood"), (Failure.cannotCreate, "a file can't be made"),
    (Failure.output, "the output can't be written"),
    (Failure.notPermitted, "this user may not ask for it"),
    (Failure.configuration, "a configuration or a key is faulty"),
  ]

  private static var text: String {
    let list = commands.map { "  \($0.name.padded(14)) \($0.summary)" }
    let codes = exitCodes.map { "  \(String($0.code).padded(4)) \($0.meaning)" }
    return
      (["prismctl COMMAND [OPTIONS]", ""] + list
      + ["", "`prismctl help COMMAND` tells more; `prismctl version` prints the version. Exit codes (sysexits.h):"]
      + codes
      + ["`run` ends with the exit code of its program."])
      .joined(separator: "\n")
  }
}
