import PrismAdmission
package import PrismPacket
import PrismProtocol
import Synchronization

/// A request of another input that the ingest server has read whole: from one of its HTTP paths, or a message of a protocol
/// of its own.
package struct InputRequest: Sendable {
  /// The path of an HTTP request; empty for a message.
  package var path: String
  /// The header `Content-Type`; empty if it was left out.
  package var contentType: String
  /// The compression of the body.
  package var packing: PacketEncoding
  /// The body is compressed.
  package var isPacked: Bool { packing != .none }
  /// The body, or the message, as it came.
  package var body: [UInt8]
  /// Bytes of memory that are reserved for all that the request becomes until it is answered.
  package var reservedBytes: Int
  /// The largest body, unpacked, that the reserved memory is enough for. Small ones become eight times as large; the reports of
  /// large ones are made in parts of some 2 MiB.
  package var roomBytes: Int { max(reservedBytes / 8, reservedBytes - 2 * 1024 * 1024) }
  /// Whether the sender has the answer.
  package var receipt = AnswerReceipt()

  /// A request with these parts.
  package init(
    path: String = "", contentType: String = "", packing: PacketEncoding = .none, body: [UInt8] = [],
    reservedBytes: Int = 0
  ) {
    (self.path, self.contentType, self.packing) = (path, contentType, packing)
    (self.body, self.reservedBytes) = (body, reservedBytes)
  }
}

/// The answer to an `InputRequest`.
package struct InputAnswer: Sendable, Equatable {
  /// The status of an HTTP answer; for a message below 400 if it was taken.
  package var status: Int
  package var contentType: String
  /// The body, or the bytes that answer a message.
  package var body: [UInt8]
  /// The header `Retry-After`, in seconds; nil: trying again unchanged is no use.
  package var retrySeconds: Int?
  /// The connection ends after this answer.
  package var mustClose: Bool

  /// An answer with these parts.
  package init(
    status: Int = 200, contentType: String = "application/json", body: [UInt8], retrySeconds: Int? = nil,
    mustClose: Bool = false
  ) {
    (self.status, self.contentType, self.body) = (status, contentType, body)
    (self.retrySeconds, self.mustClose) = (retrySeconds, mustClose)
  }
}

/// Reports of another input that one commit takes.
struct InputPart {
  /// The most of a part: other users wait while it is committed. One report may go past the bytes.
  static let reportsMax = 1000, bytesMax = 512 * 1024
  /// Fewer reports are known one by one.
  static let runMin = 32

  private(set) var reports: [Submission] = []
  /// The places of reports beside the record that they are made of: they are no records of their own.
  private(set) var beside: Set<Int> = []
  /// nil: each report is known by its own id, or is not known.
  var run: ReportIDRun?
  private var bytes = 0

  var isIdentified: Bool { run != nil || reports.contains(where: \.isIdentified) }

  var isFull: Bool { reports.count >= Self.reportsMax || bytes >= Self.bytesMax }

  /// - Parameter bytes: of what the report is made of, so that what comes again makes the same parts under any configuration.
  mutating func append(_ report: Submission, bytes: Int, isBeside: Bool = false) {
    if isBeside { beside.insert(reports.count) }
    reports.append(report)
    self.bytes += bytes
  }
}

/// Whether the sender of a request has its answer. A request that comes again is a repetition only if the answer to the first
/// one is lost; else it is a new request with equal content.
package final class AnswerReceipt: Sendable {
  /// The state of the answer, as far as it is known.
  package enum State: Sendable {
    /// The connection is open, and the answer may still arrive.
    case open
    /// The sender went on after the answer, or ended the connection in order.
    case received
    /// The connection ended before, or the answer asked the sender to try again.
    case lost
  }

  private struct Held {
    var state = State.open
    var isAnswered = false
    var isLost: (@Sendable (_ isAnswered: Bool) -> Bool)?
  }

  private let held: Mutex<Held>

  /// - Parameter isLost: looks at the connection while the state is open; nil: only `settle` ends the state.
  package init(isLost: (@Sendable (_ isAnswered: Bool) -> Bool)? = nil) { held = Mutex(Held(isLost: isLost)) }

  /// The state as the connection has it now.
  package var state: State {
    held.withLock { $0.state == .open && $0.isLost?($0.isAnswered) == true ? .lost : $0.state }
  }

  /// The state without a look at the connection.
  package var settledState: State { held.withLock { $0.state } }

  /// The answer is about to be written.
  package func beginAnswer() { held.withLock { $0.isAnswered = true } }

  /// Ends the open state. The first call counts.
  package func settle(_ state: State) {
    held.withLock { if $0.state == .open { $0 = Held(state: state) } }
  }
}
