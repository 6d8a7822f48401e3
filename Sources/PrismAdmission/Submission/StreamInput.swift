/// An input with a protocol of its own on its connections: messages one after the other. The ingest server reads them, within a
/// user's share of the memory and of the turns.
public protocol StreamInput: Sendable {
  /// The name of its messages in counters.
  var name: String { get }
  /// The state of a new connection.
  /// - Parameter isTCP: it came over TCP.
  func makeStream(isTCP: Bool) -> any MessageStream
  /// Answers a message, after the commit of its reports.
  func answer(_ request: InputRequest, from peer: ReportingPeer, to sink: any SubmissionSink) async -> InputAnswer
}

/// One connection of a `StreamInput` without its socket: bytes in, messages out. Pure.
public protocol MessageStream: Sendable {
  /// Takes input up to the end of a message. - Returns: the position behind what was taken.
  mutating func consume(_ chunk: Span<UInt8>, from start: Int) -> Int
  /// Takes the message that is whole; the stream goes on behind it.
  mutating func takeMessage() -> [UInt8]?
  /// Takes bytes for the other end that are no answer to a message.
  mutating func takeOutput() -> [UInt8]
  /// A message is whole, and is not taken yet.
  var hasMessage: Bool { get }
  /// Bytes of a message that is not whole, or not taken.
  var heldBytes: Int { get }
  /// Bytes of the message that comes, as far as they are known; nil: its length is open.
  var messageBytes: Int? { get }
  /// A message is larger than is taken: the connection ends.
  var isTooLarge: Bool { get }
  /// The input makes no sense: the connection ends.
  var mustClose: Bool { get }
}
