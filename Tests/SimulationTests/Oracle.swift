import PrismBase
import PrismConfig
import PrismProtocol
import PrismStore
import PrismTestSupport

@testable import PrismEngine

/// The answers that the clients got, kept apart from the daemon: reports that must be at the collector, or in the
/// ledger.
struct Oracle {
  typealias Line = SimulatedCollector.Line

  /// Reports that were stored, by namespace and kind.
  private(set) var stored: [Line: Int] = [:]
  /// Reports whose answer never came: they may be stored.
  private(set) var unanswered: [LifeReport] = []
  private(set) var lastNumber = 0
  /// Everything that was ever sent by a client, by number.
  private var sent: [Int: LifeReport] = [:]
  private var ids: [Int: String] = [:]
  /// When it was handed in, each time; by number.
  private var handedIn: [Int: [Duration]] = [:]
  /// Reports with a client's own id, which may send them again.
  private(set) var repeatable: [LifeReport] = []

  mutating func newNumber() -> Int {
    lastNumber += 1
    return lastNumber
  }

  /// - Parameter uptime: now.
  mutating func sends(_ reports: [LifeReport], at uptime: Duration) {
    for report in reports {
      sent[report.number] = report
      handedIn[report.number, default: []].append(uptime)
    }
    unanswered = reports
  }

  /// - Throws: where an answer can't be.
  mutating func answered(_ answers: [Reporter.Answer], _ settings: LifeSettings) throws {
    guard answers.count == unanswered.count else {
      throw Broken(description: "\(unanswered.count) reports had \(answers.count) answers")
    }
    let reports = unanswered
    unanswered = []
    for (report, answer) in zip(reports, answers) { try answered(report, answer, settings) }
  }

  private mutating func answered(_ report: LifeReport, _ answer: Reporter.Answer, _ settings: LifeSettings) throws {
    switch answer {
    case .stored(let id, isDuplicate: true, _):
      guard report.clientID == id, ids[report.number] != nil || sent[report.number] != nil else {
        throw Broken(description: "report \(report.number) is no duplicate")
      }
      ids[report.number] = id
    case .stored(let id, isDuplicate: false, let isPayloadLeftOut):
      if let given = report.clientID, given != id { throw Broken(description: "\(given) was stored as \(id)") }
      if report.clientID != nil { repeatable.append(report) }
      ids[report.number] = id
      let namespace = settings[report.namespace]
      let isLeftOut = !namespace.uploadsPayloads(of: report.type) || report.isCrash && report.isLarge(for: namespace)
      guard !isPayloadLeftOut || report.hasPayload && isLeftOut else {
        throw Broken(description: "the payload of report \(report.number) was left out")
      }
      count(report, hasPayload: report.hasPayload && !isPayloadLeftOut)
    case .refused(let code):
      let namespace = settings[report.namespace]
      let isDue: Bool =
        switch code {
        case .unknownNamespace: !settings.isPresent(report.namespace)
        case .gatherOff: !namespace.isGather
        case .storeFull:
          namespace.onFull == .refuse || namespace.maxStoreBytes < 1 << 30 || namespace.maxUserBytes != nil
        case .payloadTooLarge: report.hasPayload && !report.isCrash && report.isLarge(for: namespace)
        default: false
        }
      guard isDue else { throw Broken(description: "report \(report.number) was refused: \(code)") }
    }
  }

  private mutating func count(_ report: LifeReport, hasPayload: Bool) {
    stored[Line(namespace: report.namespace, kind: .meta), default: 0] += 1
    if hasPayload { stored[Line(namespace: report.namespace, kind: .payload), default: 0] += 1 }
  }

  /// After a kill the ledger says whether what was not answered was stored. Clients with ids of their own ask again.
  mutating func resolve(_ ledgers: [Line: Ledger]) {
    for (line, ledger) in ledgers { stored[line] = ledger.stored }
    repeatable += unanswered.filter { $0.clientID != nil }
    unanswered = []
  }

  mutating func forgetRepeatable() { repeatable = [] }

  /// - Throws: where what is on its way was never handed in, or under another id.
  func expect(_ report: ArrivedReport, _ line: Line) throws {
    guard let original = sent[report.number], original.namespace == line.namespace, original.type == report.type else {
      throw Broken(description: "report \(report.number) is in \(line), and was never handed in there")
    }
    if let id = ids[report.number] ?? original.clientID, id != report.reportID {
      throw Broken(description: "report \(report.number) was answered as \(id), and leaves as \(report.reportID)")
    }
  }

  /// However the clock was set: `Prism-Sent-Time` is after the report's time by the report's age.
  func expectAge(of report: ArrivedReport, sentTime: Int64, now: Duration) throws {
    let age = sentTime - report.time
    let isTold = handedIn[report.number, default: []].contains { abs((now - $0).wholeMilliseconds - age) <= 2000 }
    guard isTold else { throw Broken(description: "report \(report.number) is not \(age) ms old") }
  }
}

extension NamespaceConfiguration {
  fileprivate func uploadsPayloads(of type: String) -> Bool {
    ReportType(type).flatMap { monitorList.entry(for: $0) }?.isUploadPayload ?? false
  }
}
