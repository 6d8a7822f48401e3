import Glibc
import PrismConfig
import PrismPacket
import PrismProtocol

/// A command line, taken apart and checked.
struct Invocation: Sendable {
  static let commonOptions = [
    Command.Option("--control", "PATH", "the control socket ($PRISM_CONTROL, /run/prism/control.sock)"),
    Command.Option("--ingest", "PATH", "the ingest socket ($PRISM_INGEST, /run/prism/ingest.sock)"),
    Command.Option("--help", nil, "this text"),
  ]

  let command: Command
  let operands: [String]
  private var values: [String: String] = [:]
  private var switches: Set<String> = []

  /// nil when help or the version was asked for, and printed.
  /// - Throws: exit code 64, with a hint.
  @MainActor
  init?(_ words: [String]) throws(Failure) {
    let globals = Self.leadingOptions(words)
    let rest = Array(words.dropFirst(globals.count))
    switch rest.first {
    case nil, "--help", "help":
      print(Self.overview)
      if rest.isEmpty { throw Failure(Failure.usage, "") }
      return nil
    case "--version":
      print("prismctl \(PrismVersion.current)")
      return nil
    default: break
    }
    guard let command = commands.filter({ rest.starts(with: $0.words) }).max(by: { $0.words.count < $1.words.count })
    else { throw .usage("there is no command `\(rest[0])`; `prismctl --help` lists them") }
    self.command = command
    var operands: [String] = []
    var remaining = globals + rest.dropFirst(command.words.count)
    while let word = remaining.first {
      remaining.removeFirst()
      if word == "--help" {
        print(command.help)
        return nil
      }
      if word == "--" {
        operands += remaining
        break
      }
      guard word.hasPrefix("--") else {
        operands.append(word)
        continue
      }
      try Self.take(word, of: command, &remaining, &values, &switches)
    }
    self.operands = operands
    let required = command.operands.filter { !$0.hasPrefix("[") }.count
    let most = command.operands.last?.hasSuffix("...]") == true ? Int.max : max(required, command.operands.count)
    guard (required...most).contains(operands.count) else {
      throw .usage("usage: \(command.usage)")
    }
  }

  private static func leadingOptions(_ words: [String]) -> [String] {
    var count = 0
    while count + 1 < words.count, ["--control", "--ingest"].contains(words[count]) { count += 2 }
    return Array(words.prefix(count))
  }

  private static func take(
    _ word: String, of command: Command, _ remaining: inout [String], _ values: inout [String: String],
    _ switches: inout Set<String>
  ) throws(Failure) {
    let parts = word.split(separator: "=", maxSplits: 1).map(String.init)
    guard let option = (command.options + commonOptions).first(where: { $0.name == parts[0] }) else {
      throw .usage("`\(command.name)` has no option `\(parts[0])`; usage: \(command.usage) (see --help)")
    }
    if option.value == nil {
      switches.insert(option.name)
    } else if parts.count == 2 {
      values[option.name] = parts[1]
    } else if !remaining.isEmpty {
      values[option.name] = remaining.removeFirst()
    } else {
      throw .usage("`\(option.name)` needs a value: \(option.help)")
    }
  }

  func has(_ option: String) -> Bool { switches.contains(option) }
  subscript(option: String) -> String? { values[option] }

  var controlSocket: String { self["--control"] ?? Self.environment("PRISM_CONTROL") ?? "/run/prism/control.sock" }
  var ingestSocket: String? { self["--ingest"] }

  static func environment(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }

  /// The program's environment.
  static var environment: [String: String] {
    var result: [String: String] = [:]
    var entry = environ
    while let text = entry.pointee {
      let parts = String(cString: text).split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      if parts.count == 2 { result[String(parts[0])] = String(parts[1]) }
      entry += 1
    }
    return result
  }

  static func configurationLoader(_ path: String) -> ConfigurationLoader {
    ConfigurationLoader(path: path, environment: environment, identityCheck: ClientIdentity.objection)
  }

  @MainActor private static var overview: String {
    let list = commands.map { "  \($0.name.padded(14)) \($0.summary)" }
    return
      (["prismctl [--control PATH] [--ingest PATH] COMMAND", ""] + list
      + ["", "`prismctl COMMAND --help` tells more. Exit codes: 0, 1 (the answer is no), 64, 69, 73, 78 (sysexits.h)."])
      .joined(separator: "\n")
  }
}
