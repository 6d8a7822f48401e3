import PrismAdmission
import PrismPacket
import PrismProtocol

/// One connection of the forward protocol without its socket: it finds where messages end, and does the handshake of a shared
/// key (Forward Protocol Specification v1.5, "Handshake Messages").
struct ForwardStream: MessageStream {
  private enum State {
    /// A PING must come first, for this nonce.
    case handshake(SharedKey, nonce: [UInt8])
    case messages
    case closing
  }

  /// Whole messages are handed over together up to this size.
  private static let batchBytes = 32 * 1024

  private var state: State
  private var held: [UInt8] = []
  /// Behind the last message in `held` that is whole.
  private var wholeEnd = 0
  private var framer = MsgPackFramer(from: 0)
  private var output: [UInt8] = []
  private(set) var isTooLarge = false

  /// - Parameter key: the other end must know it; nil: no handshake.
  init(key: SharedKey?) {
    guard let key else {
      state = .messages
      return
    }
    guard let nonce = try? Hashing.randomBytes(16) else {
      state = .closing
      return
    }
    state = .handshake(key, nonce: nonce)
    output = SharedKey.hello(nonce: nonce)
  }

  var heldBytes: Int { held.count + output.count }
  var hasMessage: Bool { wholeEnd > 0 }
  /// Packed events say their length; what follows them has less than a read.
  var messageBytes: Int? { framer.neededBytes > held.count + 1 ? framer.neededBytes - wholeEnd : nil }
  var mustClose: Bool { if case .closing = state { true } else { false } }

  mutating func takeOutput() -> [UInt8] {
    defer { output = [] }
    return output
  }

  mutating func takeMessage() -> [UInt8]? {
    guard hasMessage else { return nil }
    var whole: [UInt8] = []
    if wholeEnd == held.count { swap(&whole, &held) } else { whole = Array(held[..<wholeEnd]) }
    forgetWhole()
    return whole
  }

  private mutating func forgetWhole() {
    held.removeFirst(min(wholeEnd, held.count))
    (wholeEnd, framer) = (0, MsgPackFramer(from: 0))
  }

  mutating func consume(_ chunk: Span<UInt8>, from start: Int) -> Int {
    var position = start
    while position < chunk.count, wholeEnd < Self.batchBytes, !mustClose {
      let room = ForwardMessage.bytesMax + 1 - (held.count - wholeEnd)
      let end = min(chunk.count, position + max(0, room))
      held.append(copying: chunk, position..<end)
      guard end > position, findMessages() else {
        state = .closing
        held.removeLast(held.count - wholeEnd)  // what was whole before is taken
        break
      }
      position = end
    }
    return mustClose ? chunk.count : position
  }

  /// - Returns: false if the input is not of this protocol, or a message is too large.
  private mutating func findMessages() -> Bool {
    while held.count >= framer.neededBytes, !mustClose {
      var framer = framer
      guard isPlausible(held[wholeEnd]), let isWhole = try? framer.advance(held.span) else { return false }
      self.framer = framer
      guard isWhole else { break }
      wholeEnd = framer.position
      self.framer = MsgPackFramer(from: wholeEnd)
      if case .handshake(let key, let nonce) = state { greet(key, nonce) }
    }
    isTooLarge = framer.neededBytes - wholeEnd > ForwardMessage.bytesMax
    if let messageBytes, !isTooLarge { held.reserveCapacity(wholeEnd + messageBytes) }
    return !isTooLarge
  }

  /// A message is an array of 2 to 4 elements, a PING one of 6.
  private func isPlausible(_ byte: UInt8) -> Bool {
    if case .handshake = state { return byte == 0x96 }
    return 0x92...0x94 ~= byte || byte == 0xDC
  }

  private mutating func greet(_ key: SharedKey, _ nonce: [UInt8]) {
    let (pong, isKnown) = key.answer(toPing: Array(held[..<wholeEnd]), nonce: nonce)
    forgetWhole()
    output += pong
    state = isKnown ? .messages : .closing
  }
}
