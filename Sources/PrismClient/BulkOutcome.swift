public import PrismProtocol

/// The result of reports that were sent in the mode `cumulative`.
public struct BulkOutcome: Sendable, Equatable {
  /// Reports that were dealt with: stored or refused.
  public private(set) var answered = 0
  /// By code.
  public private(set) var refused: [RefusalCode: Int] = [:]
  /// The first of each code, for people: its number in the stream, from 1, and the daemon's message.
  public private(set) var examples: [RefusalCode: (sequence: Int, message: String)] = [:]

  /// Reports that were stored.
  public var stored: Int { answered - refused.values.reduce(0, +) }

  mutating func take(_ line: [UInt8]) throws(ClientError) {
    guard let value = try? JSONValue(parsing: line), let acked = value["acked"]?.int, acked >= answered else {
      throw .protocolViolation("an answer without `acked`")
    }
    answered = acked
    for entry in value["refused"]?.array ?? [] {
      guard let refusal = Refusal(entry) else { throw .protocolViolation("a refusal without a code") }
      refused[refusal.code, default: 0] += 1
      if examples[refusal.code] == nil { examples[refusal.code] = (entry["seq"]?.int ?? 0, refusal.message) }
    }
  }

  public static func == (a: Self, b: Self) -> Bool { a.answered == b.answered && a.refused == b.refused }
}
