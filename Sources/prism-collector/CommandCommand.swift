import Glibc
import PrismBase
import PrismCollector
import PrismProtocol

extension Command {
  /// `prism-collector command …`: sends commands to devices, and shows what came of them.
  static let command = group(
    "command",
    [
      (
        "send", "COMMAND [KEY=VALUE...]",
        """
        write a command for a device, and print its id; for many the id of the job
        COMMAND is \(CommandName.allCases.map(\.rawValue).joined(separator: ", ")).
        A VALUE of digits is a number, true and false are booleans, and any other is text, as is one in double quotes.
        """
      ),
      (
        "list", "",
        """
        print the commands that a device got or gets
        Their ids, names, states, when they expire, and results. `record delete --table prism.command` takes one back that
        did not begin.
        """
      ),
    ], options: CommandSending.options
  ) { line throws(Failure) in
    guard let namespace = line["--namespace"].flatMap({ NamespaceName($0) }),
      line["--device"].map({ !$0.isEmpty && line["--where"] == nil }) ?? (line.verb == "send" && line["--where"] != nil)
    else {
      throw line.misused(
        "command \(line.verb) needs --namespace with a namespace's name, and --device or, to send, --where")
    }
    guard let device = line["--device"] else { return try await CommandSending.toMany(line, namespace) }
    let request = line.verb == "send" ? try CommandSending.draft(line).request(namespace, device) : nil
    return try await line.ask { client throws(Failure) in
      let records = RecordTableClient(client, namespace: namespace, table: .command, device: device)
      if let request {
        _ = try await records.put(request.id.text, fields: request.fields.text, isNew: true)
        try await client.note(ifUnknown: device, "the command waits for it")
        print(request.id.text)
        return 0
      }
      let listing = Listing(line, "id name state expires result")
      try await records.list { record in
        let value = (try? JSONValue(parsing: Array(record.utf8))) ?? .null
        return listing.add(value, CommandSending.texts(value))
      }
      return listing.end()
    }
  }
}

/// The words of `prism-collector command`.
enum CommandSending {
  static let options = [
    ArgumentOption("--namespace", "NAME", "a namespace whose records the device synchronizes"),
    ArgumentOption("--device", "ID", "the device that carries it out"),
    ArgumentOption("--where", "EXPR", "the devices that carry it out, as of `device find`: a job"),
    ArgumentOption("--per-minute", "N", "with --where: devices that get it in a minute, 1 to 60000 (600)"),
    ArgumentOption("--failures", "N", "with --where: the job stops when more devices failed (10)"),
    ArgumentOption("--expires", "SPAN", "it must begin within this time: 90s, 15m, 2h, 3d, at most 30d (1h)"),
    ArgumentOption("--sign", "FILE", "an Ed25519 private key, PEM, that signs it; the key stays here"),
    ArgumentOption("--json", nil, "with list: each command as one line of JSON, with its arguments and times"),
  ]

  static func draft(_ line: Invocation) throws(Failure) -> CommandDraft {
    let words = line.operands
    guard let name = CommandName(rawValue: words[0]) else {
      throw .usage("command send: \(CommandFault.name(words[0]).message)")
    }
    return try CommandDraft(line, name, try values(Array(words.dropFirst()), of: "command send"))
  }

  /// Makes a job. A signature is of one device, so with a key the devices are those that the expression chooses now.
  static func toMany(_ line: Invocation, _ namespace: NamespaceName) async throws(Failure) -> Int32 {
    let (draft, expression) = (try draft(line), line["--where"] ?? "")
    let one = try draft.request(namespace, "device")
    var body = JSONValue([
      "id": draft.id.text, "namespace": namespace.text, "where": expression, "command": one.name.rawValue,
      "args": one.fields["args"] ?? .object([]), "expireTime": one.expires,
    ])
    for (option, member) in [("--per-minute", "perMinute"), ("--failures", "failuresMax")] {
      guard let text = line[option] else { continue }
      guard let number = Int(text) else { throw .usage("\(option): must be a whole number") }
      body = body.adding([member: number])
    }
    return try await line.ask { [body] client throws(Failure) in
      var whole = body
      if draft.isSigned {
        whole = whole.adding(["signatures": try await signatures(draft, namespace, expression, client)])
      }
      print((try await client.post("/jobs", whole)["id"]?.string ?? "").printable)
      return 0
    }
  }

  private static func signatures(
    _ draft: CommandDraft, _ namespace: NamespaceName, _ expression: String, _ client: CollectorClient
  ) async throws(Failure) -> JSONValue {
    var members: [JSONValue.Member] = []
    for device in try await client.devices(where: expression) {
      guard let id = CommandRequest.id(of: draft.id.text, for: device) else { continue }
      let signature = try draft.request(namespace, device, id: id).signature ?? []
      members.append(.init(device, .string(Base64.encode(signature))))
    }
    return .object(members)
  }

  /// `KEY=VALUE` each.
  static func values(_ words: [String], of command: String) throws(Failure) -> [String: CommandValue] {
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
  static func texts(_ record: JSONValue) -> [String?] {
    let fields = record["fields"]
    let answer =
      fields?["name"]?.string == CommandName.ask.rawValue ? fields?["result"].flatMap { QuestionAnswer(json: $0) } : nil
    let result =
      answer.map { "\("report".counted($0.rows)), \($0.looked) looked at (ask --show)" }
      ?? fields?["result"].map { $0.string ?? $0.text }
    let state = fields?["state"]?.string ?? "waiting"
    // Why one was refused or failed is shown whole.
    let isLong = state == "done" && result?.utf8.count ?? 0 > 120
    return [
      record["id"]?.string, fields?["name"]?.string, state, fields?.shown("expires"),
      isLong ? "\(result?.utf8.count ?? 0) bytes (--json)" : result,
    ]
  }
}
