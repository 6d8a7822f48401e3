import Glibc
import PrismBase
import PrismClient
import PrismProtocol

extension Command {
  static let send = Command(
    words: ["send"], summary: "report one thing, or many from a file of NDJSON",
    options: [
      Option("--type", "T", "the report's type (for one report)"),
      Option("--namespace", "N", "its namespace (prism)"),
      Option("--meta", "JSON", "its meta, a JSON object"),
      Option("--payload", "FILE", "a file to send with it"),
      Option("--report-id", "REPORT_ID", "an id of yours: sent twice, stored once"),
      Option("--app", "NAME", "the app that it is of (prismctl)"),
      Option("--ndjson", "FILE|-", "many: one report of the ingest protocol a line (docs/ingest-protocol.md)"),
      Option("--json", nil, "the outcome as JSON"),
    ],
    sockets: [.ingest],
    example: #"prismctl send --type net --meta '{"ms":12}'"#
  ) { invocation async throws(Failure) in
    if let file = invocation["--ndjson"] {
      try await sendMany(from: file, invocation)
    } else {
      try await sendOne(invocation)
    }
  }

  private static func sendOne(_ invocation: Invocation) async throws(Failure) {
    let report = try report(invocation)
    let answer: ReportAnswer
    do { answer = try await invocation.client.report(report) } catch {
      throw Failure(Failure.unavailable, error.description)
    }
    switch answer {
    case .stored(let id, let isDuplicate, let isPayloadLeftOut):
      let json: JSONValue = [
        "status": "stored", "reportId": .string(id), "duplicate": .bool(isDuplicate),
        "payloadLeftOut": .bool(isPayloadLeftOut),
      ]
      print(invocation.has("--json") ? json.text : id)
      if isPayloadLeftOut {
        let cause = "set isUploadPayload for \(report.type) in \(report.namespace), or see its maxBodyMByte"
        Terminal.printError("prismctl: stored without the payload: \(cause)")
      }
    case .sampled: print(invocation.has("--json") ? (["status": "sampled"] as JSONValue).text : "sampled: not stored")
    case .refused(let refusal):
      let json: JSONValue = [
        "status": "refused", "code": .string(refusal.code.rawValue), "message": .string(refusal.message),
      ]
      if invocation.has("--json") { print(json.text) }
      throw Failure(Failure.no, "refused, \(refusal.code.rawValue): \(refusal.message)")
    }
  }

  private static func report(_ invocation: Invocation) throws(Failure) -> Report {
    guard let typeText = invocation["--type"] else {
      throw .usage("send: --type is missing (or --ndjson FILE for many)")
    }
    guard let type = ReportType(typeText) else {
      throw .usage("--type: a type is 1 to 128 of A-Z a-z 0-9 _ . : -, the first a letter or digit")
    }
    let namespace = try invocation.namespace
    guard let metaText = invocation["--meta"] else {
      throw .usage("send: --meta is missing: a JSON object with at least one member, as '{\"ms\":12}'")
    }
    let meta: JSONValue
    do { meta = try JSONValue(parsing: metaText) } catch { throw .usage("--meta: \(error)") }
    var report = Report(type, in: namespace, meta: meta)
    if let idText = invocation["--report-id"] {
      guard let id = ReportID(idText) else { throw .usage("--report-id: an id is 1 to 64 of A-Z a-z 0-9 _ -") }
      report.id = id
    }
    if let file = invocation["--payload"] { report.payload = try Files.read(file) }
    return report
  }

  private static func sendMany(from file: String, _ invocation: Invocation) async throws(Failure) {
    let own = ["--type", "--namespace", "--meta", "--payload", "--report-id"].filter { invocation[$0] != nil }
    if let option = own.first {
      throw .usage("send: \(option) is of one report; with --ndjson each line names what it is of")
    }
    let lines = try RequestLines(path: file)
    let outcome: BulkOutcome
    do {
      outcome = try await invocation.client.send(
        nextChunk: { lines.next() },
        progress: { Terminal.progress("sending", done: $0, total: lines.countIfKnown) })
    } catch { throw Failure(Failure.unavailable, error.description) }
    Terminal.endProgress()
    printSummary(outcome, json: invocation.has("--json"))
    if let failure = lines.failure {
      throw Failure(failure.exitCode, "\(failure.message); \(outcome.answered) reports before it were sent")
    }
    if !outcome.refused.isEmpty { throw Failure(Failure.no, "") }
  }

  private static func printSummary(_ outcome: BulkOutcome, json: Bool) {
    let refused = outcome.refused.sorted { $0.key.rawValue < $1.key.rawValue }
    guard !json else {
      let codes = JSONValue.object(refused.map { .init($0.key.rawValue, .int($0.value)) })
      let members: JSONValue = [
        "stored": .int(outcome.stored), "sampled": .int(outcome.sampledOut), "refused": codes,
      ]
      return print(members.text)
    }
    print("stored \(outcome.stored) of \(outcome.answered)")
    if outcome.sampledOut > 0 { print("sampled \(outcome.sampledOut): not stored") }
    for (code, count) in refused {
      let example = outcome.examples[code].map { ", first report \($0.sequence): \($0.message.printable)" } ?? ""
      print("refused \(count) \(code.rawValue)\(example)")
    }
  }
}
