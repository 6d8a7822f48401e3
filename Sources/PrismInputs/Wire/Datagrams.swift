package import PrismAdmission
import PrismBase
import PrismProtocol

/// Bytes that came in one piece to a socket that gives no answers.
package struct Datagram: Sendable {
  /// The most that is read of one; the rest is cut off.
  package static let bytesMax = 64 * 1024

  package var bytes: [UInt8]
  /// It was longer than `bytesMax`.
  package var isCut: Bool
  /// As the kernel says; over UDP it does not.
  package var peer: ReportingPeer

  package init(_ bytes: [UInt8], isCut: Bool, from peer: ReportingPeer) {
    (self.bytes, self.isCut, self.peer) = (bytes, isCut, peer)
  }
}

/// One connection of another input's protocol without its socket: it finds where messages end.
package protocol MessageStream: Sendable {
  /// Bytes of a message that is not whole, or not taken.
  var heldBytes: Int { get }
  /// A message is whole, and is not taken yet.
  var hasMessage: Bool { get }
  /// Bytes of the message that comes, as far as they are known; nil: its length is open.
  var messageBytes: Int? { get }
  /// The input makes no sense: the connection ends.
  var mustClose: Bool { get }
  /// A message is larger than is taken: the connection ends.
  var isTooLarge: Bool { get }
  /// Takes input up to the end of a message. - Returns: the position behind what was taken.
  mutating func consume(_ chunk: Span<UInt8>, from start: Int) -> Int
  /// Takes the messages that are whole; the stream goes on behind them.
  mutating func takeMessage() -> [UInt8]?
  /// Takes bytes for the other end that are no answer to a message.
  mutating func takeOutput() -> [UInt8]
  /// Nothing more comes.
  mutating func end()
}

/// Reports of an input without answers until their commit, by the user that they are charged to.
struct UnansweredReports {
  /// Handed over together: other users wait while they are committed.
  private static let reportsMax = 300
  private static let attemptsMax = 10, retryMillisecondsMax = 2000
  /// For 10 s: a sender on a Unix socket waits meanwhile.
  private static let namespaceAttemptsMax = 6

  private var byUser: [UInt32: [(report: Submission, weight: Int)]] = [:]
  private var size = (reports: 0, bytes: 0)
  /// Samples or messages by what became of them.
  private(set) var stored = 0, refused = 0
  /// Of the last that was refused.
  private(set) var refusal: Refusal?
  /// A report whose namespace has no file waits for a moment, also if others do not. False once that was in vain, until a
  /// report is taken.
  private(set) var awaitsNamespace: Bool

  init(awaitsNamespace: Bool) { self.awaitsNamespace = awaitsNamespace }

  var isFull: Bool { size.reports >= Self.reportsMax || size.bytes >= InputPart.bytesMax }

  /// - Parameter weight: the samples that the report is made of.
  mutating func add(_ report: Submission, weight: Int = 1) {
    byUser[report.source.peer.accountID, default: []].append((report, weight))
    size = (size.reports + 1, size.bytes + report.bytes)
  }

  /// Hands all over, and waits for their commit.
  /// - Parameter waits: the sender is held up while reports may be taken later; false: such a report is lost, but for `awaitsNamespace`.
  /// - Returns: false if some were not taken that may be later.
  mutating func submit(to sink: any SubmissionSink, waits: Bool, _ time: any TimeSource) async -> Bool {
    size = (0, 0)
    for attempt in 1... {
      var (passing, wait): ([UInt32: [(report: Submission, weight: Int)]], Int) = ([:], 0)
      for (user, refusal, report, weight) in await Self.answers(to: byUser, sink) {
        guard let refusal else {
          stored += weight
          awaitsNamespace = true
          continue
        }
        self.refusal = refusal
        let isMissing = refusal.code == .unknownNamespace && !waits
        if isMissing, attempt == Self.namespaceAttemptsMax { awaitsNamespace = false }
        let mayWait = isMissing ? awaitsNamespace : waits && attempt < Self.attemptsMax
        if mayWait, let milliseconds = refusal.retryMilliseconds {
          passing[user, default: []].append((report, weight))
          wait = max(wait, milliseconds)
        } else {
          refused += weight
        }
      }
      byUser = passing
      if passing.isEmpty { break }
      do { try await time.sleep(for: .milliseconds(min(wait, Self.retryMillisecondsMax))) } catch { return false }
    }
    return refusal?.retryMilliseconds == nil && refusal != .stopping || refused == 0
  }

  private typealias Answer = (user: UInt32, refusal: Refusal?, report: Submission, weight: Int)

  /// No user waits for the commit of another.
  private static func answers(
    to byUser: [UInt32: [(report: Submission, weight: Int)]], _ sink: any SubmissionSink
  ) async -> [Answer] {
    await withTaskGroup(of: [Answer].self) { tasks in
      for (user, all) in byUser {
        tasks.addTask {
          // The sockets hold a fixed amount, and no sender may hold up the others by the memory of its own.
          let group = SubmissionGroup(all.map(\.report), userID: user, isReserved: true)
          return zip(all, await sink.submit(group)).map { (user, $1.refusal, $0.report, $0.weight) }
        }
      }
      return await tasks.reduce(into: []) { $0 += $1 }
    }
  }
}

/// The sources of reports by their senders, so that common information is stored once.
struct PeerSources {
  private static let sourcesMax = 256

  private let make: @Sendable (ReportingPeer) -> SubmissionSource
  private var known: [ReportingPeer: SubmissionSource] = [:]

  init(_ make: @escaping @Sendable (ReportingPeer) -> SubmissionSource) { self.make = make }

  mutating func source(of peer: ReportingPeer) -> SubmissionSource {
    if let source = known[peer] { return source }
    let source = make(peer)
    if known.count >= Self.sourcesMax { known = [:] }
    known[peer] = source
    return source
  }
}
