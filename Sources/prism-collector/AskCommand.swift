import Glibc
import PrismBase
import PrismCollector
import PrismProtocol

extension Command {
  /// `prism-collector ask …`: asks devices for kept reports, and shows what they answered (docs/recorder.md, "Questions").
  static let ask = Command(
    "ask",
    """
    ask devices for kept reports of a TYPE, and print the id of the question
    TYPE may be a pattern of types.
      rows=true       the reports leave; without it they stay, and are counted
      of=MEMBER       count, sum, least, greatest and percentiles of a number in their meta
      by=MEMBER       one answer for each value of a member
      last=SPAN       reports of the last 90s, 15m, 2h, 3d
      since=TIME      reports made at this time or later, and with until=TIME before that one: 15m, 2h, 3d ago,
                      2026-01-31, 2026-01-31T12:00:00Z, or milliseconds since 1970
      field=MEMBER    with equals=TEXT, contains=TEXT, or from=N and to=N: only reports that meet it
      maxKByte=N      the most that may leave each device (256)
    """, operands: ["[TYPE]", "[KEY=VALUE...]"], options: Asking.options,
    example: "prism-collector ask --namespace shop --where 'tag.region = eu' log last=1d", work: .later(Asking.run))
}

/// The words of `prism-collector ask`.
private enum Asking {
  static func run(_ line: Invocation) async throws(Failure) -> Int32 {
    guard let namespace = line["--namespace"].flatMap({ NamespaceName($0) }) else {
      throw line.misused("ask needs --namespace with a namespace's name")
    }
    if let id = line["--show"] {
      guard line.operands.isEmpty else { throw line.misused("ask --show takes no TYPE") }
      return try await line.ask { client throws(Failure) in try await show(id, namespace, line, client) }
    }
    guard let expression = line["--where"], let type = line.operands.first else {
      throw line.misused("ask needs --where with an expression for devices, and a TYPE")
    }
    var args = try CommandSending.values(Array(line.operands.dropFirst()), of: "ask")
    args["type"] = .text(type)
    for (name, value) in args where ["last", "since", "until"].contains(name) {
      args[name] = .integer(try time(name, value.json.string ?? value.json.text))
    }
    let question: Question
    do throws(CommandFault) { question = try Question(args) } catch { throw .usage("ask: \(error.message)") }
    let draft = try CommandDraft(line, .ask, args)
    let wait = try line["--wait"].map { (text) throws(Failure) in try CommandDraft.span(text, of: "--wait") }
    return try await line.ask { client throws(Failure) in
      let devices = try await devices(expression, namespace, question, client)
      guard !line.has("--estimate"), !devices.isEmpty else { return devices.isEmpty ? 1 : 0 }
      for device in devices {
        let request = try draft.request(namespace, device)
        let records = RecordTableClient(client, namespace: namespace, table: .command, device: device)
        _ = try await records.put(draft.id.text, fields: request.fields.text, isNew: true)
      }
      guard let wait else {
        print(draft.id.text)
        return 0
      }
      return try await show(draft.id.text, namespace, line, client, seconds: wait)
    }
  }

  static let options = [
    ArgumentOption("--namespace", "NAME", "the namespace whose kept reports are asked for"),
    ArgumentOption("--where", "EXPRESSION", "the devices, as for `device find`: 'tag.region = eu and version < 2.10'"),
    ArgumentOption("--estimate", nil, "says how many devices and kept reports it would be, and asks nothing"),
    ArgumentOption("--expires", "SPAN", "devices must begin within this time: 90s, 15m, 2h, 3d, at most 30d (1h)"),
    ArgumentOption("--sign", "FILE", "an Ed25519 private key, PEM, that signs it for each device; the key stays here"),
    ArgumentOption("--wait", "SPAN", "waits until all have answered, at most so long, and shows the answer"),
    ArgumentOption("--show", "ID", "shows what came of a question"),
    ArgumentOption("--json", nil, "shows it as the API answers it"),
  ]

  static func time(_ name: String, _ text: String) throws(Failure) -> Int64 {
    do throws(WrittenTime.Fault) {
      guard name != "last" else { return try WrittenTime.seconds(text, daysMax: Question.lastDaysMax) }
      return try WrittenTime.milliseconds(text, now: SystemTime().unixMilliseconds)
    } catch { throw .usage("ask: \(name): \(error.message)") }
  }

  /// Chooses devices, and says what the question may cost, by their last ledgers and hourly reports.
  static func devices(
    _ expression: String, _ namespace: NamespaceName, _ question: Question, _ client: CollectorClient
  ) async throws(Failure) -> [String] {
    var (devices, kept): ([String], Int) = ([], 0)
    try await client.devices(where: expression, sort: "device") { device in
      devices += [device["device"]?.string].compactMap(\.self)
      kept += device["kept"]?.int ?? 0
      return true
    }
    var (reporting, rows, bytes, most) = (0, 0, 0, devices.count * question.bytesMax)
    let chosen = Set(devices)
    let rings = try await client.get(
      "/rings", query: "namespace=\(namespace)&type=\(question.type.text.percentEncoded)")
    for ring in rings["devices"]?.array ?? [] where chosen.contains(ring["device"]?.string ?? "") {
      let held = ring["bytes"]?.int ?? 0
      (reporting, rows, bytes) = (reporting + 1, rows + (ring["kept"]?.int ?? 0), bytes + held)
      most -= max(0, question.bytesMax - held)
    }
    let known =
      reporting == 0
      ? "how many of them are \(question.type) is not known: no device sent ringHealth in the last 3 hours"
      : "\(rows) of \(question.type), \(bytes >> 10) KiB, on \("device".counted(reporting)) that sent ringHealth in the last 3 hours"
    let cost = question.want == .rows ? "at most \((most + 1023) >> 10) KiB of reports leave" : "no report leaves"
    StandardStreams.say(
      """
      prism-collector: \("device".counted(devices.count)), with \("kept report".counted(kept)) of all types
      prism-collector: \(known)
      prism-collector: \(cost)

      """)
    return devices
  }

  /// - Parameter seconds: waits so long for devices that did not answer. - Returns: 75 if some have not.
  static func show(
    _ id: String, _ namespace: NamespaceName, _ line: Invocation, _ client: CollectorClient, seconds: Int64 = 0
  ) async throws(Failure) -> Int32 {
    let (time, path) = (SystemTime(), "/questions/\(namespace)/\(id.percentEncoded)")
    let end = time.uptime + .seconds(seconds)
    var answer = try await client.get(path)
    func isWaiting() -> Bool { ["waiting", "accepted", "running"].contains { answer["states"]?[$0] != nil } }
    while isWaiting(), time.uptime < end {
      do { try await time.sleep(for: .seconds(1)) } catch { break }
      answer = try await client.get(path)
    }
    if line.isJSON { print(answer.text) } else { show(id, answer, line) }
    return isWaiting() ? 75 : 0
  }

  private static func show(_ id: String, _ answer: JSONValue, _ line: Invocation) {
    let states = (answer["states"]?.object ?? []).map { "\($0.value.text) \($0.key)" }.joined(separator: ", ")
    let cost = "\(answer["looked"]?.int ?? 0) looked at in \(answer["ms"]?.int ?? 0) ms"
    print(
      "\(id): \(states); \("report".counted(answer["rows"]?.int ?? 0)), \(answer["bytes"]?.int ?? 0) bytes; \(cost)")
    var groups = answer["groups"]?.array ?? []
    if let others = answer["others"], others["count"] != 0 { groups.append(others) }
    let names = "value count sum min p50 p90 p95 p99 max error"
    let numbers = Listing(line, names)
    for group in groups {
      numbers.add(
        group,
        names.split(separator: " ").map { $0 == "error" ? Self.percent(group["error"]) : Self.short(group[String($0)]) }
      )
    }
    if !groups.isEmpty { _ = numbers.end() }
    _ = Listing(line, "device state rows bytes message").all(answer["devices"])
  }

  /// Five digits: no number of a sketch is better.
  private static func short(_ value: JSONValue?) -> String? {
    guard let number = value?.double, value?.int == nil, number.isFinite, number != 0 else {
      return value?.isNull == false ? value?.string ?? value?.text : nil
    }
    let scale = pow(10, 4 - floor(log10(abs(number))))
    return scale.isFinite ? "\((number * scale).rounded() / scale)" : "\(number)"
  }

  private static func percent(_ value: JSONValue?) -> String? {
    value?.double.map { $0 == 0 ? "0" : "\(short(.double($0 * 100)) ?? "") %" }
  }
}
