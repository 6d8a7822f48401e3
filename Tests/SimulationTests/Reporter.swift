import PrismAdmission
import PrismBase
import PrismProtocol
import PrismTestSupport

/// A client's connection: its bytes go through the real conversation, admission and batches, its answers are read as a
/// client reads them.
struct Reporter {
  /// The answer to a report.
  enum Answer: Equatable {
    case stored(id: String, isDuplicate: Bool, isPayloadLeftOut: Bool)
    case refused(RefusalCode)
  }

  private var conversation: IngestConversation

  init(_ rules: AdmissionRules, userID: UInt32) {
    let peer = ReportingPeer(userID: userID, groupIDs: [userID], processID: 4711, processName: "app")
    let host = HostFacts(deviceID: LifeSettings.deviceID, systemVersion: "Debian 12", bootID: LifeSettings.bootID)
    conversation = IngestConversation(
      session: Session(rules: rules, host: host, peer: peer, sessionID: "session"), version: "1")
  }

  mutating func take(_ rules: AdmissionRules, _ clock: ClockSetting) {
    conversation.take(rules)
    conversation.take(clock)
  }

  /// The batches of the next commit.
  mutating func batches(of reports: [LifeReport], unixMilliseconds: Int64) -> [ReportBatch] {
    for report in reports {
      var turn = WorkTurn.unbounded
      _ = conversation.consume(report.request.span, within: &turn, unixMilliseconds: unixMilliseconds)
    }
    return conversation.takeBatches()
  }

  /// One answer a report, in their order. - Parameter batches: how many the commit was of.
  mutating func answers(to outcome: CommitOutcome, batches: Int) throws -> [Answer] {
    for index in 0..<batches {
      switch outcome {
      case .committed(let outcomes): conversation.settle(outcomes[index], failure: nil)
      case .failed(let refusal): conversation.settle(nil, failure: refusal)
      }
    }
    conversation.flushAnswers()
    defer { conversation.output = [] }
    return try conversation.output.split(separator: 0x0A).map { try Self.answer($0) }
  }

  private static func answer(_ line: ArraySlice<UInt8>) throws -> Answer {
    let value = try JSONValue(parsing: Array(line))
    if value["status"]?.string == "stored", let id = value["reportId"]?.string {
      return .stored(
        id: id, isDuplicate: value["duplicate"]?.bool ?? false,
        isPayloadLeftOut: value["payloadLeftOut"]?.bool ?? false)
    }
    guard let code = value["code"]?.string.flatMap(RefusalCode.init(rawValue:)) else {
      throw Broken(description: "an answer that no client understands: \(value.text)")
    }
    return .refused(code)
  }
}
