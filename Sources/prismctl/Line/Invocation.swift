import Glibc
import PrismBase
import PrismClient
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
  static let help = Command.Option("--help", nil, "this text", shortName: "-h")
  static let output = Command.Option("--output", "text|json", "json is the same as --json")
  static let watch = Command.Option(
    "--watch", "SECONDS", "again and again, every 2 seconds or as many as given", presence: .attached)

  let command: Command
  let arguments: Arguments
  /// Sockets that were named before the command.
  private let leading: Arguments

  var operands: [String] { arguments.operands }

  /// nil when help or the version was asked for, and printed.
  /// - Throws: exit code 64, with a hint.
  @MainActor
  init?(_ words: [String]) throws(Failure) {
    let count = Self.leadingWords(words)
    let rest = Array(words.dropFirst(count))
    if try Overview.answers(rest) { return nil }
    guard let command = commands.filter({ rest.starts(with: $0.words) }).max(by: { $0.words.count < $1.words.count })
    else { throw .usage(Overview.unknown(rest)) }
    self.command = command
    // A prefix that a script sets for every command: a command that opens no such socket has no use for it.
    leading = try Self.read(Array(words.prefix(count)), [Self.control, Self.ingest], of: command)
    arguments = try Self.read(Array(rest.dropFirst(command.words.count)), command.allOptions, of: command)
    if arguments.contains(Self.help.name) {
      print(command.help)
      return nil
    }
    try checkOperands()
    try checkShared()
  }

  private func checkOperands() throws(Failure) {
    let required = command.operands.filter { !$0.hasPrefix("[") }.count
    let most = command.operands.last?.hasSuffix("...]") == true ? Int.max : max(required, command.operands.count)
    if operands.count < required {
      throw .usage("`\(command.name)` needs \(command.operands[operands.count]); usage: \(command.usage)")
    }
    guard operands.count > most else { return }
    let missing = command.words == Command.send.words ? ["--type", "--meta"].filter { self[$0] == nil } : []
    if !missing.isEmpty {
      let names = missing.joined(separator: " and ")
      throw .usage("send: write \(names) before the values, as in: \(command.example)")
    }
    throw .usage("`\(operands[most])` belongs to no option of `\(command.name)`; as in: \(command.example)")
  }

  private func checkShared() throws(Failure) {
    if let output = self["--output"], !["text", "json"].contains(output) {
      throw .usage("--output: is `\(output)`, must be text or json")
    }
    guard let text = self["--watch"] else { return }
    guard let seconds = Int(text), (1...3600).contains(seconds) else {
      throw .usage("--watch: is `\(text)`, must be 1 to 3600 seconds")
    }
  }

  private static func leadingWords(_ words: [String]) -> Int {
    var count = 0
    while count + 1 < words.count, [control.name, ingest.name].contains(words[count]) { count += 2 }
    return count
  }

  private static func read(
    _ words: [String], _ options: [Command.Option], of command: Command
  ) throws(Failure) -> Arguments {
    do throws(ArgumentFault) { return try Arguments(words, options: options, last: help.name) } catch {
      guard case .unknownOption(let name, let nearest) = error else { throw .usage(error.description) }
      throw .usage(unknownOption(name, nearest, of: command))
    }
  }

  private static func unknownOption(_ name: String, _ nearest: String?, of command: Command) -> String {
    let hint = nearest.map { "; did you mean `\($0)`?" } ?? ""
    let others = commands.contains { $0.allOptions.contains { $0.name == name } } && hint.isEmpty
    let why = others ? "; other commands have it" : ""
    return "`\(command.name)` has no option `\(name)`\(why)\(hint) (see `prismctl \(command.name) --help`)"
  }

  func has(_ option: String) -> Bool {
    arguments.contains(option) || option == "--json" && self["--output"] == "json"
  }
  subscript(option: String) -> String? { arguments[option] ?? leading[option] }

  /// nil: the command runs once.
  var watchSeconds: Int? { self["--watch"].flatMap { Int($0) } ?? (has("--watch") ? 2 : nil) }

  var controlSocket: String { self["--control"] ?? Self.usualControlSocket }

  static var usualControlSocket: String {
    environment("PRISM_CONTROL") ?? DevelopmentFolder.running?.controlSocket ?? "/run/prism/control.sock"
  }

  /// nil: what the client library takes by itself.
  var ingestSocket: String? {
    if let path = self["--ingest"] { return path }
    return Self.environment("PRISM_INGEST") == nil ? DevelopmentFolder.running?.ingestSocket : nil
  }

  /// The one that `--namespace` names, or `prism`. - Throws: 64.
  var namespace: NamespaceName {
    get throws(Failure) {
      if let name = NamespaceName(self["--namespace"] ?? "prism") { return name }
      throw .usage("--namespace: a name is 1 to 64 of A-Z a-z 0-9 _ -, the first a letter or digit")
    }
  }

  var client: PrismClient { PrismClient(socket: ingestSocket, app: ["APP_NAME": self["--app"] ?? "prismctl"]) }

  static func environment(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }

  static func configurationLoader(_ path: String) -> ConfigurationLoader {
    ConfigurationLoader(path: path, environment: ProcessEnvironment.all, identityCheck: ClientIdentity.fault)
  }
}
