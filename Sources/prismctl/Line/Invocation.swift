import Glibc
import PrismBase
import PrismConfig
import PrismPacket
import PrismProtocol

/// A command line, taken apart and checked.
struct Invocation: Sendable {
  static let control = Command.Option(
    "--control", "PATH",
    "the control socket ($PRISM_CONTROL, else that of `prismd --dev`, else /run/prism/control.sock)")
  static let ingest = Command.Option(
    "--ingest", "PATH", "the ingest socket ($PRISM_INGEST, else that of `prismd --dev`, else /run/prism/ingest.sock)")
  static let help = Command.Option("--help", nil, "this text")
  static let output = Command.Option("--output", "text|json", "json is the same as --json")
  static let watch = {
    var option = Command.Option("--watch", "SECONDS", "again and again, every 2 seconds or as many as given")
    option.isValueOptional = true
    return option
  }()

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
    if try Overview.answers(rest) { return nil }
    guard let command = commands.filter({ rest.starts(with: $0.words) }).max(by: { $0.words.count < $1.words.count })
    else { throw .usage(Overview.unknown(rest)) }
    self.command = command
    var operands: [String] = []
    var remaining = rest.dropFirst(command.words.count)
    // A prefix that a script sets for every command: a command that opens no such socket has no use for it.
    for (name, value) in zip(globals, globals.dropFirst()) where name.hasPrefix("--") { values[name] = value }
    while let word = remaining.popFirst() {
      if word == "--help" || word == "-h" {
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
    try checkOperands()
    try checkShared()
  }

  private func checkOperands() throws(Failure) {
    let required = command.operands.filter { !$0.hasPrefix("[") }.count
    let most = command.operands.last?.hasSuffix("...]") == true ? Int.max : max(required, command.operands.count)
    guard (required...most).contains(operands.count) else { throw .usage("usage: \(command.usage)") }
  }

  private mutating func checkShared() throws(Failure) {
    switch values["--output"] {
    case nil, "text": break
    case "json": switches.insert("--json")
    case let other?: throw .usage("--output: is `\(other)`, must be text or json")
    }
    guard let text = values["--watch"] else { return }
    guard let seconds = Int(text), (1...3600).contains(seconds) else {
      throw .usage("--watch: is `\(text)`, must be 1 to 3600 seconds")
    }
  }

  private static func leadingOptions(_ words: [String]) -> [String] {
    var count = 0
    while count + 1 < words.count, ["--control", "--ingest"].contains(words[count]) { count += 2 }
    return Array(words.prefix(count))
  }

  private static func take(
    _ word: String, of command: Command, _ remaining: inout ArraySlice<String>, _ values: inout [String: String],
    _ switches: inout Set<String>
  ) throws(Failure) {
    let parts = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
    guard let option = command.allOptions.first(where: { $0.name == parts[0] }) else {
      throw .usage(unknownOption(parts[0], of: command))
    }
    if option.value == nil {
      guard parts.count == 1 else { throw .usage("`\(option.name)` takes no value") }
      switches.insert(option.name)
    } else if parts.count == 2 {
      values[option.name] = parts[1]
    } else if option.isValueOptional {
      switches.insert(option.name)
    } else if let value = remaining.popFirst() {
      values[option.name] = value
    } else {
      throw .usage("`\(option.name)` needs a value: \(option.help)")
    }
  }

  private static func unknownOption(_ name: String, of command: Command) -> String {
    let hint = NearestName.of(name, among: command.allOptions.map(\.name)).map { "; did you mean `\($0)`?" } ?? ""
    let others = commands.contains { $0.allOptions.contains { $0.name == name } } && hint.isEmpty
    let why = others ? "; other commands have it" : ""
    return "`\(command.name)` has no option `\(name)`\(why)\(hint) (see `prismctl \(command.name) --help`)"
  }

  func has(_ option: String) -> Bool { switches.contains(option) }
  subscript(option: String) -> String? { values[option] }

  /// nil: the command runs once.
  var watchSeconds: Int? { values["--watch"].flatMap { Int($0) } ?? (has("--watch") ? 2 : nil) }

  var controlSocket: String {
    self["--control"] ?? Self.environment("PRISM_CONTROL") ?? DevelopmentFolder.running?.controlSocket
      ?? "/run/prism/control.sock"
  }

  /// nil: what the client library takes by itself.
  var ingestSocket: String? {
    if let path = self["--ingest"] { return path }
    return Self.environment("PRISM_INGEST") == nil ? DevelopmentFolder.running?.ingestSocket : nil
  }

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
}
