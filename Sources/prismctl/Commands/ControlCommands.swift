import PrismBase
import PrismControl
import PrismProtocol

/// The commands that ask the daemon and show its answers.
extension Command {
  static let json = Option("--json", nil, "the daemon's answers as they come, one JSON object a line")

  static let flush = Command(
    words: ["flush"], summary: "upload now", operands: ["[NAMESPACE]"],
    options: [
      Option("--wait", nil, "until nothing waits, or nothing more can leave; with progress"),
      Option("--timeout", "SECONDS", "with --wait: give up after these"), json,
    ],
    example: "prismctl flush shop --wait --timeout 60"
  ) { invocation throws(Failure) in
    var arguments: [JSONValue.Member] = invocation.has("--wait") ? [.init("wait", true)] : []
    var timeoutSeconds: Int?
    if let text = invocation["--timeout"] {
      guard let seconds = Int(text), (0...86_400).contains(seconds), invocation.has("--wait") else {
        throw .usage("--timeout: 0 to 86400 seconds, together with --wait")
      }
      arguments.append(.init("timeoutSeconds", .int(seconds)))
      timeoutSeconds = seconds + 10  // the daemon says first that its time is up
    }
    if let namespace = invocation.operands.first { arguments.append(.init("namespace", .string(namespace))) }
    var (most, left, failing): (Int, Int, [String]) = (0, 0, [])
    var (last, noteTime) = (AnswerLine(.null), SystemTime().uptime + Self.notePause)
    try ask(.flush, arguments, invocation, timeoutSeconds: timeoutSeconds) { answer in
      last = answer
      guard let progress = answer[Answers.progress] else { return "" }
      (most, left) = (max(most, progress.waiting), progress.waiting)
      let failingNow = progress.failing.map { "\($0.namespace) is tried again: \($0.cause)" }
      for line in failingNow where !failing.contains(line) { Terminal.note(line) }
      failing = failingNow
      if left > 0, SystemTime().uptime >= noteTime {
        let why = failing.first ?? "a receipt of the collector is waited for"
        Terminal.note("\("row".counted(left)) not sent yet; \(why); `prismctl explain NAMESPACE` says more")
        noteTime = Terminal.errorIsTerminal ? SystemTime().uptime + Self.notePause : .seconds(Int64.max)
      }
      Terminal.progress("flushing", done: most - left, total: most)
      return ""
    }
    Terminal.endProgress()
    if !invocation.has("--wait") {
      for held in last[Answers.held] ?? [] { Terminal.note("\(held.namespace) keeps rows all the same: \(held.cause)") }
    }
    guard left == 0 else { throw Failure(Failure.no, unsent(left, last, failing)) }
  }

  /// Between two lines of `flush --wait` that say what it waits for.
  private static let notePause = Duration.seconds(5)

  private static func unsent(_ left: Int, _ last: AnswerLine, _ failing: [String]) -> String {
    let held = (last[Answers.held] ?? []).map { "\($0.namespace): \($0.cause)" }
    let time = last[Answers.timedOut] == true ? ["the time is up"] + failing : []
    let hint = "`prismctl status` shows whose, `prismctl explain NAMESPACE` what keeps them"
    return (["\("row".counted(left)) not sent yet"] + time + held + [hint]).joined(separator: "; ")
  }

  static let reload = Command(
    words: ["reload"], summary: "apply the configuration files; prints what changed, or every fault",
    options: [json], example: "prismctl reload"
  ) { invocation throws(Failure) in try ask(.reload, [], invocation) }

  static let network = Command(
    words: ["network"], summary: "show the kind of the network, and the reason", options: [json],
    isWatchable: true, example: "prismctl network"
  ) { invocation throws(Failure) in
    try ask(.network, [], invocation) { answer in
      answer[Answers.network].map { broken("\($0.kind): \($0.reason ?? "")") }
    }
  }

  static let explain = Command(
    words: ["explain"], summary: "show why rows are not sent, and when they will be",
    operands: ["NAMESPACE", "[TYPE]"], options: [json], isWatchable: true,
    example: "prismctl explain shop"
  ) { invocation throws(Failure) in
    var arguments: [JSONValue.Member] = [.init("namespace", .string(invocation.operands[0]))]
    if invocation.operands.count > 1 { arguments.append(.init("type", .string(invocation.operands[1]))) }
    try ask(.explain, arguments, invocation) { $0[Answers.text].map(broken) }
  }

  static let trace = Command(
    words: ["trace"], summary: "show a report's journey, with times", operands: ["REPORT_ID"], options: [json],
    isWatchable: true, example: "prismctl trace order-4711"
  ) { invocation throws(Failure) in
    try ask(.trace, [.init("reportId", .string(invocation.operands[0]))], invocation) { answer in
      answer[Answers.rows].map { JourneyText($0, columns: Screen.size?.columns).text }
    }
  }

  private static let namespace = Option("--namespace", "N", "of this namespace only")
  private static let since = Option("--since", "TIME", "not older: 15m, 2h, 3d, or a time as 2026-01-31T12:00:00Z")

  static let deadList = Command(
    words: ["dead", "list"], summary: "list reports and changes of records that the collector can't take",
    options: [namespace, since, Option("--json", nil, "one JSON document")],
    isWatchable: true,
    example: "prismctl dead list --namespace shop"
  ) { invocation throws(Failure) in
    let since = try invocation.since
    var (letters, refused): ([DeadLetterReport], [RefusedRecordReport]) = ([], [])
    var isMore: Bool
    repeat {  // the daemon tells a page of each at a time
      let request = ControlRequest(
        .deadList,
        namespaceArgument(invocation) + [
          .init("after", .int(letters.last?.id ?? 0)), .init("afterRecord", .int(refused.last?.number ?? 0)),
        ])
      isMore = false
      try ControlConnection(invocation).ask(request) { answer in
        let (dead, records) = (answer[Answers.dead] ?? [], answer[Answers.refusedRecords] ?? [])
        (letters, refused, isMore) = (letters + dead, refused + records, !dead.isEmpty || !records.isEmpty)
      }
    } while isMore
    (letters, refused) = (letters.filter { $0.time >= since }, refused.filter { $0.time >= since })
    let document: JSONValue = ["dead": letters.controlJSON, "refusedRecords": refused.controlJSON]
    let table = DeadTable(letters, refused, columns: Screen.size?.columns)
    print(invocation.has("--json") ? document.prettyText : table.text)
  }

  static let deadShow = Command(
    words: ["dead", "show"], summary: "show one of them, by its number or report id", operands: ["[ID]"],
    options: deadID + [json], example: "prismctl dead show 12"
  ) { invocation throws(Failure) in try ask(.deadShow, try chosen(invocation, orAll: false), invocation) }

  static let deadRequeue = Command(
    words: ["dead", "requeue"], summary: "send one again, or all", operands: ["[ID]"],
    options: [Option("--all", nil, "all of them"), namespace] + deadID + [json], example: "prismctl dead requeue 12"
  ) { invocation throws(Failure) in try ask(.deadRequeue, try chosen(invocation, orAll: true), invocation) }

  static let deadDrop = Command(
    words: ["dead", "drop"], summary: "delete one, or all", operands: ["[ID]"],
    options: [Option("--all", nil, "all of them"), namespace, Option("--yes", nil, "don't ask before all")] + deadID
      + [json],
    example: "prismctl dead drop --all --namespace shop --yes"
  ) { invocation throws(Failure) in
    let letters = try chosen(invocation, orAll: true)
    if invocation.has("--all") {
      let place = invocation["--namespace"].map { " of \($0)" } ?? ""
      try invocation.confirm("delete all dead letters\(place) for good?", else: "nothing was deleted")
    }
    try ask(.deadDrop, letters, invocation)
  }

  static let acceptStore = Command(
    words: ["accept-store"], summary: "take deletions of records from the store that answers now",
    operands: ["NAMESPACE"], options: [json], example: "prismctl accept-store shop"
  ) { invocation throws(Failure) in
    try ask(.acceptStore, [.init("namespace", .string(invocation.operands[0]))], invocation) {
      $0[Answers.text].map(broken)
    }
  }

  static let ack = Command(
    words: ["ack"], summary: "take out of `status` that a damaged database was set aside", options: [json],
    example: "prismctl ack"
  ) { invocation throws(Failure) in try ask(.ack, [], invocation) { $0[Answers.text].map(broken) } }

  static let export = Command(
    words: ["export"], summary: "write stored rows as NDJSON, while the daemon runs",
    options: [namespace, since, Option("--kind", "meta|payload", "of this kind only")],
    example: "prismctl export --namespace shop"
  ) { invocation throws(Failure) in
    var arguments = namespaceArgument(invocation)
    if let kind = invocation["--kind"] {
      guard RowKind.reports.contains(where: { $0.name == kind }) else { throw .usage("--kind: meta or payload") }
      arguments.append(.init("kind", .string(kind)))
    }
    let since = try invocation.since
    try ask(.export, arguments, invocation, isExact: true) { answer in
      if answer[Answers.done] == true { return "" }
      let time = answer[Answers.meta]?.createTime.map { RFC3339.text(unixMilliseconds: Int64($0)) }
      return time ?? "" >= since ? answer.json.text : ""
    }
  }

  /// - Parameter render: an answer's text; "" for no text; nil for the ordinary one.
  static func ask(
    _ command: ControlRequest.Command, _ arguments: [JSONValue.Member], _ invocation: Invocation,
    timeoutSeconds: Int? = nil, isExact: Bool? = nil, render: (AnswerLine) -> String? = { _ in nil }
  ) throws(Failure) {
    let connection = ControlConnection(invocation, timeoutSeconds: timeoutSeconds, isExact: isExact)
    try connection.ask(ControlRequest(command, arguments)) { answer in
      let text = invocation.has("--json") ? answer.json.text : render(answer) ?? ordinaryText(answer)
      if !text.isEmpty { print(text) }
    }
  }

  /// Lines as wide as the terminal at most, if there is one.
  private static func broken(_ text: String) -> String {
    text.split(separator: "\n").flatMap { String($0).wrapped(Screen.size?.columns) }.joined(separator: "\n")
  }

  /// An answer's `text` where the daemon gives one, else its members.
  private static func ordinaryText(_ answer: AnswerLine) -> String {
    if let text = answer[Answers.text] { return text }
    let members = (answer.json.object ?? []).filter { $0.key != "done" }
    guard !members.isEmpty else { return "" }
    return members.map { "\($0.key): \($0.value.string ?? $0.value.prettyText)" }.joined(separator: "\n")
  }

  private static func namespaceArgument(_ invocation: Invocation) -> [JSONValue.Member] {
    invocation["--namespace"].map { [.init("namespace", .string($0))] } ?? []
  }

  /// A report id may be of digits, as the numbers of dead letters are.
  private static let deadID = [
    Option("--number", "N", "the one of this number, also if a report id is equal"),
    Option("--report-id", "REPORT_ID", "the one of this report id, also of digits alone"),
  ]

  /// The one letter that is named, or all.
  private static func chosen(_ invocation: Invocation, orAll all: Bool) throws(Failure) -> [JSONValue.Member] {
    let (text, number, report) = (invocation.operands.first, invocation["--number"], invocation["--report-id"])
    let isAll = all && invocation.has("--all")
    guard [text, number, report].compactMap(\.self).count == (isAll ? 0 : 1) else {
      throw .usage("either an ID of `prismctl dead list`, --number or --report-id\(all ? ", or --all" : "")")
    }
    if isAll { return [.init("all", true)] + namespaceArgument(invocation) }
    // `007` is no number of a dead letter.
    let whole = (number ?? text).flatMap { word in Int(word).flatMap { String($0) == word ? $0 : nil } }
    guard number == nil || whole != nil else {
      throw .usage("--number: `\(number ?? "")` is no number of a dead letter")
    }
    return [
      .init("id", whole.map { .int($0) } ?? .string(report ?? text ?? "")), .init("isNumber", .bool(number != nil)),
    ]
  }
}

/// `prismctl trace` for people: each row of the report, and below it what happened to it, in the order of time.
struct JourneyText {
  let text: String

  /// - Parameter columns: of the terminal; nil without a terminal, so that no line is broken.
  init(_ rows: [TraceReport], columns: Int?) {
    text = rows.flatMap { Self.lines($0).flatMap { $0.wrapped(columns, indent: 2) } }.joined(separator: "\n")
  }

  private static func lines(_ row: TraceReport) -> [String] {
    func at(_ time: String?, _ what: String) -> String? { time.map { "  \($0) \(what)" } }
    let times = "after \("attempt".counted(row.attempts ?? 0))"
    let duplicate = row.duplicate == true ? "; the collector had it already" : ""
    let failure = row.lastFailure.map { "  \($0.time) the namespace's last try failed: \($0.cause)" }
    let dead = "dead letter \(row.id ?? 0), \(times): answered \(row.status ?? 0) \(row.message ?? "")"
    let left = row.cause.map { Ledger.Account(rawValue: $0)?.dropText ?? $0 }
    return [
      "\(row.namespace)\(row.type.map { " \($0)" } ?? "") \(row.kind): \(row.state)\(row.userId.map { ", of user \($0)" } ?? "")",
      row.countedOn.map { "  counted on the report \($0), with which it is collapsed" },
      at(row.createdTime, "created"),
      at(row.packetTime, "claimed for packet \(row.packetId ?? "")"), failure,
      at(row.deliveredTime, "delivered, with a receipt, \(times)\(duplicate)"), at(row.time, left ?? dead),
      row.state == "kept" ? "  it stays here until a trigger or a question asks for it (docs/recorder.md)" : nil,
      row.isOnItsWay ? "  not delivered yet: `prismctl explain \(row.namespace)` tells what keeps it" : nil,
    ].compactMap { $0 }
  }
}

extension Ledger.Account {
  /// Why a report that was dropped left.
  fileprivate var dropText: String {
    switch self {
    case .expired: "expired: it was held for longer than `expirationDay`"
    case .evicted: "evicted: its namespace or its user was over the quota, and it was among the oldest"
    case .cleared: "cleared: a new version of the app came, and `isUpdateClear` is on"
    case .removed: "removed: by an operator, or its payload was over a lower `maxBodyMByte`"
    case .corrupt: "corrupt: it was damaged on the disk, and is set aside"
    case .overwritten: "overwritten: newer reports took its place in the ring"
    case .waiting, .claimed, .delivered, .dead, .kept: rawValue
    }
  }
}

extension Invocation {
  /// The value of `--since` as RFC 3339 in UTC, which sorts by time; "" if it was not given. - Throws: 64.
  fileprivate var since: String {
    get throws(Failure) {
      guard let text = self["--since"] else { return "" }
      do throws(WrittenTime.Fault) {
        return RFC3339.text(
          unixMilliseconds: try WrittenTime.milliseconds(text, now: SystemTime().unixMilliseconds))
      } catch { throw .usage("--since: \(error.message)") }
    }
  }
}

extension Command {
  static let status = Command(
    words: ["status"], summary: "show what is stored, sent and held, and why",
    options: [
      Option("--all", nil, "quiet namespaces too, and where every row of each went"),
      Option("--json", nil, "one JSON document with stable keys"),
    ],
    isWatchable: true,
    example: "prismctl status --all"
  ) { invocation throws(Failure) in
    try ControlConnection(invocation).ask(ControlRequest(.status)) { answer in
      guard let status = answer[Answers.status] else { return }
      let document = answer[Answers.statusDocument] ?? .null
      print(
        invocation.has("--json")
          ? document.prettyText
          : StatusTable(status, columns: Screen.size?.columns, isWhole: invocation.has("--all")).text)
    }
  }
}
