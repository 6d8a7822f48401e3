import Glibc
import PrismBase
import PrismCollector
import PrismPacket
import PrismProtocol

extension CollectorCommand {
  /// `prism-collector command …`: sends commands to devices, and shows what came of them.
  static let command = CollectorCommand(
    name: "command", verbs: ["send": 1...Int(Int16.max), "list": 0...0], options: CommandSending.options,
    usage: CommandSending.usage
  ) { line throws(Fault) in
    guard let namespace = line["--namespace"].flatMap({ NamespaceName($0) }), let device = line["--device"],
      !device.isEmpty
    else {
      throw line.misused("command \(line.verb) needs --namespace with a namespace's name, and --device")
    }
    let request = line.verb == "send" ? try CommandSending.request(line, namespace, device) : nil
    return try await line.ask { desk throws(Fault) in
      let records = RecordDesk(desk, namespace: namespace, table: .command, device: device)
      if let request {
        _ = try await records.put(request.id.text, fields: request.fields.text, isNew: true)
        print(request.id.text)
        return 0
      }
      var output = LineOutput()
      try await records.list { output.add(line.isJSON ? $0 : CommandSending.text($0)) }
      return output.exitCode
    }
  }
}

/// The words of `prism-collector command`.
enum CommandSending {
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

  static func request(
    _ line: CollectorLine, _ namespace: NamespaceName, _ device: String
  ) throws(Fault) -> CommandRequest {
    let words = line.operands
    guard let name = CommandName(rawValue: words[0]) else {
      throw .usage("command send: \(CommandFault.name(words[0]).message)")
    }
    return try CommandDraft(line, name, try values(Array(words.dropFirst()), of: "command send")).request(
      namespace, device)
  }

  /// `KEY=VALUE` each.
  static func values(_ words: [String], of command: String) throws(Fault) -> [String: CommandValue] {
    var values: [String: CommandValue] = [:]
    for word in words {
      let parts = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
      guard parts.count == 2, values[parts[0]] == nil else {
        throw .usage("\(command): `\(parts[0])`: give each argument once, as KEY=VALUE")
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

  /// A record of a command for people.
  static func text(_ record: String) -> String {
    let value = try? JSONValue(parsing: Array(record.utf8))
    let fields = value?["fields"]
    let result = fields?["result"].map { $0.string ?? $0.text }
    let parts = [
      value?["id"]?.string, fields?["name"]?.string, fields?["state"]?.string ?? "waiting", fields?.time("expires"),
      result,
    ]
    return parts.map { ($0 ?? "-").printable }.joined(separator: "\t")
  }
}
