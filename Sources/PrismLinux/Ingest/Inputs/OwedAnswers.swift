import PrismAdmission

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
