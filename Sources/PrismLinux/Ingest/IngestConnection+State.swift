import PrismAdmission
import PrismInputs
import PrismProtocol

extension IngestConnection {
  var isWithinRequest: Bool {
    if foreign != nil { return false }
    if let stream { return stream.value.heldBytes > 0 && !stream.value.hasMessage && owed.handedBytes == nil }
    return !opening.isEmpty || http?.value.isWithinRequest ?? conversation?.value.isWithinRequest ?? false
  }
  var mustClose: Bool {
    if foreign != nil { return true }
    if let stream {
      return (stream.value.mustClose || isStreamEnded) && owed.handedBytes == nil && !stream.value.hasMessage
    }
    return conversation?.value.mustClose == true || http?.value.mustClose == true
  }
  /// Nothing is owed to the client, and nothing of it is on its way.
  var isSettled: Bool {
    let isIdle = !isHanded && stream?.value.hasMessage != true && http?.value.isAwaitingAnswers != true
    return isIdle && (mustClose || !hasInput) && conversation?.value.isSettled != false && unsentBytes == 0
  }

  // MARK: Changes of tables: for a watch, or for a list over HTTP that waits for one

  /// Takes changes of tables as they were committed. - Returns: whether the client watches one of them.
  func takes(_ changes: [RecordTableChange], _ rules: AdmissionRules) -> Bool {
    conversation?.value.take(rules)
    var isConcerned = false
    for change in changes where conversation?.value.take(change) == true { isConcerned = true }
    return isConcerned
  }

  /// How long it waits; nil: no request waits.
  var pollWait: Duration? { http?.value.pollWait }

  /// Answers the request that waits: there was no change. - Returns: false: no request waits.
  func stopPolling() -> Bool {
    guard pollWait != nil, let conversation else { return false }
    http?.value.stopPolling(&conversation.value)
    return true
  }
}

/// Holds a large value where it is. To compare an optional value with nil, or to look at one member of it, copies all of it;
/// this is only a reference then.
///
/// Only its server's thread uses it, and every use ends before the next one begins; so no access is noted while the
/// program runs. Thirty accesses a report were noted before.
final class InPlace<Value> {
  @exclusivity(unchecked) var value: Value
  init(_ value: Value) { self.value = value }
}

/// The requests of one connection that other inputs answer, until it is known whether the answers arrived.
struct OwedAnswers {
  /// Answers whose arrival is not known, of a client that sends on without waiting for them.
  private static let receiptsMax = 64

  /// Bytes of memory for a message that another input has; nil if there is no such message.
  var handedBytes: Int?
  private var receipts: [AnswerReceipt] = []
  /// All is answered, and nothing had come behind it by then: what comes now was sent after the answers arrived.
  private var isAwaited = false

  /// Another input gets a request.
  mutating func begin(_ descriptor: SharedDescriptor) -> AnswerReceipt {
    // An old one that is forgotten counts as received: then nothing is taken for a repetition.
    if receipts.count >= Self.receiptsMax { receipts.removeFirst().settle(.received) }
    let receipt = AnswerReceipt { descriptor.isLost(isAnswered: $0) }
    receipts.append(receipt)
    return receipt
  }

  /// An answer is about to be sent. - Parameter hasInput: the client has sent more before it had the answer.
  mutating func answer(hasInput: Bool) {
    receipts.last?.beginAnswer()
    isAwaited = !hasInput
  }

  /// Something came from the client.
  mutating func hear() {
    guard isAwaited else { return }
    end(.received)
  }

  /// No more is known of the answers.
  mutating func end(_ state: AnswerReceipt.State) {
    for receipt in receipts { receipt.settle(state) }
    (receipts, isAwaited) = ([], false)
  }
}
