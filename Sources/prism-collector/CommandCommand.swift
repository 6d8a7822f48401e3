import Glibc
import PrismBase
import PrismCollector
import PrismPacket
import PrismProtocol

/// `prism-collector command …`: sends commands to devices, and shows what came of them, whether the collector runs or not.
struct CommandCommand {
  /// Beside `--namespace` and `--device` of `record`.
  static let options = [
    ArgumentOption("--namespace", "NAME", "a namespace whose records the device synchronizes"),
    ArgumentOption("--device", "ID", "the device that carries it out"),
    ArgumentOption("--expires", "SPAN", "it must begin within this time: 90s, 15m, 2h, 3d, at most 30d (1h)"),
    ArgumentOption("--sign", "FILE", "an Ed25519 private key, PEM, that signs it; the key stays here"),
    ArgumentOption("--json", nil, "with list: each command as one line of JSON, with its arguments and times"),
  ]

  static let usage = """
    usage: prism-collector command send --namespace NAME --device ID COMMAND [KEY=VALUE …] [--expires SPAN] [--sign FILE]
           prism-collector command list --namespace NAME --device ID [--json]
           [--config PATH | the flags of prism-collector]

      send  writes a command (\(CommandName.allCases.map(\.rawValue).joined(separator: ", "))) for a device, and prints its id. A VALUE of
            digits is a number, true and false are booleans, and any other is text, as is one in double quotes
      list  prints the commands that the device got or gets: id, command, state, when it expires, result. `record delete
            --table prism.command` takes one back that did not begin

    \(ArgumentOption.help(options, column: 21))

    Exit codes: 0, 1 it is refused, 64 usage, 66 no such key file, 69 the store can't be reached, 74 output fails, 78 configuration.
    """

  private static let spanUnits: [Character: Int64] = ["s": 1, "m": 60, "h": 3600, "d": 86_400]
  private static let keyBytesMax = 65_536

  private let desk: RecordDesk
  private let isJSON: Bool

  /// - Parameter arguments: with the operand `command`. - Returns: the exit code.
  static func run(_ arguments: Arguments) async throws(Flags.Fault) -> Int32 {
    let words = Array(arguments.operands.dropFirst())
    guard let verb = words.first, !arguments.contains("--help") else {
      print(usage)
      return arguments.contains("--help") ? 0 : 64
    }
    guard verb == "send" && words.count > 1 || verb == "list" && words.count == 1 else {
      let reason = ["send", "list"].contains(verb) ? "wrong number of operands" : "is no command"
      throw Flags.Fault(exitCode: 64, message: "command \(verb): \(reason)\n\(usage)")
    }
    guard let namespace = arguments["--namespace"].flatMap({ NamespaceName($0) }), let device = arguments["--device"],
      !device.isEmpty
    else {
      throw Flags.Fault(
        exitCode: 64, message: "command \(verb) needs --namespace with a namespace's name, and --device\n\(usage)")
    }
    let request = verb == "send" ? try request(Array(words.dropFirst()), namespace, device, arguments) : nil
    let options = try Flags(arguments).options
    return try await CollectorDesk.open(options) { desk throws(CollectorDesk.Fault) -> Int32 in
      let records = RecordDesk(desk, namespace: namespace, table: .command, device: device)
      let command = CommandCommand(desk: records, isJSON: arguments.contains("--json"))
      return if let request { try await command.send(request) } else { try await command.list() }
    }
  }

  // MARK: Sending

  private static func request(
    _ words: [String], _ namespace: NamespaceName, _ device: String, _ arguments: Arguments
  ) throws(Flags.Fault) -> CommandRequest {
    guard let name = CommandName(rawValue: words[0]) else {
      throw Flags.Fault(exitCode: 64, message: "command send: \(CommandFault.name(words[0]).message)")
    }
    let now = SystemTime().unixMilliseconds
    var random = SystemRandomNumberGenerator()
    let id = PacketID(unixMilliseconds: now, using: &random).description
    let draft = CommandRequest(
      namespace: namespace, deviceID: device, id: RecordID(id)!, name: name,
      args: try values(Array(words.dropFirst())), expires: now + (try span(arguments["--expires"] ?? "1h")) * 1000)
    let request: CommandRequest
    do throws(CommandFault) {
      // As the device will read it: a fault is said before anything is sent.
      request = try CommandRequest(fields: draft.fields, namespace: namespace, deviceID: device, id: draft.id)
      try request.check(now: now)
    } catch { throw Flags.Fault(exitCode: 64, message: "command send: \(error.message)") }
    guard let path = arguments["--sign"] else { return request }
    let key = try signingKey(path)
    do throws(PacketError) { return try request.signed(by: key) } catch {
      throw Flags.Fault(exitCode: 69, message: "--sign: the command can't be signed: \(error.rawValue)")
    }
  }

  private static func signingKey(_ path: String) throws(Flags.Fault) -> SigningKey {
    let read: (bytes: [UInt8], mode: UInt32)
    do throws(FileError) { read = try SmallFile.readWithMode(path, bytesMax: keyBytesMax) } catch {
      throw Flags.Fault(exitCode: 66, message: "--sign: \(error.description)")
    }
    guard read.mode & 0o004 == 0 else {
      throw Flags.Fault(
        exitCode: 64,
        message: "--sign: \(path) is readable by others; chmod 600 it, and make a new key if others were here")
    }
    guard let key = SigningKey(pem: read.bytes) else {
      throw Flags.Fault(
        exitCode: 64,
        message: "--sign: \(path) holds no Ed25519 key in PEM; openssl genpkey -algorithm ed25519 makes one")
    }
    return key
  }

  private static func values(_ words: [String]) throws(Flags.Fault) -> [String: CommandValue] {
    var values: [String: CommandValue] = [:]
    for word in words {
      let parts = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
      guard parts.count == 2, values[parts[0]] == nil else {
        throw Flags.Fault(exitCode: 64, message: "command send: `\(parts[0])`: give each argument once, as KEY=VALUE")
      }
      values[parts[0]] = value(parts[1])
    }
    return values
  }

  private static func value(_ text: String) -> CommandValue {
    if let integer = Int64(text), String(integer) == text { return .integer(integer) }
    if text == "true" || text == "false" { return .truth(text == "true") }
    let isQuoted = text.utf8.count > 1 && text.hasPrefix("\"") && text.hasSuffix("\"")
    return .text(isQuoted ? String(text.dropFirst().dropLast()) : text)
  }

  private static func span(_ text: String) throws(Flags.Fault) -> Int64 {
    let longest = Int64(CommandRequest.lifetimeDaysMax) * 86_400
    guard let unit = text.last.flatMap({ spanUnits[$0] }), let count = Int64(text.dropLast()), count > 0,
      count <= longest / unit
    else {
      throw Flags.Fault(
        exitCode: 64,
        message:
          "--expires: is `\(text)`, must be a span of at most \(CommandRequest.lifetimeDaysMax) days: 90s, 15m, 2h, 3d")
    }
    return count * unit
  }

  private func send(_ request: CommandRequest) async throws(RecordDesk.Fault) -> Int32 {
    _ = try await desk.put(request.id.text, fields: request.fields.text, isNew: true)
    print(request.id.text)
    return 0
  }

  // MARK: Listing

  private func list() async throws(RecordDesk.Fault) -> Int32 {
    var isWritten = true
    try await desk.list { record in
      let line = isJSON ? record : Self.line(record)
      isWritten = StandardStreams.write(Array((line + "\n").utf8)[...], to: STDOUT_FILENO)
      return isWritten
    }
    return isWritten ? 0 : 74
  }

  private static func line(_ record: String) -> String {
    let value = try? JSONValue(parsing: Array(record.utf8))
    let fields = value?["fields"]
    let expires = fields?["expires"]?.int.map { RFC3339.text(unixMilliseconds: Int64($0)) }
    let result = fields?["result"].map { $0.string ?? $0.text }
    let parts = [
      value?["id"]?.string, fields?["name"]?.string, fields?["state"]?.string ?? "waiting", expires, result,
    ]
    return parts.map { ($0 ?? "-").printable }.joined(separator: "\t")
  }
}
