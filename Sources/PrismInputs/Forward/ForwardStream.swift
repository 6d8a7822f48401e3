import PrismBase
import PrismPacket
import PrismProtocol

/// One connection of the forward protocol without its socket: it finds where messages end, and does the handshake of a shared
/// key (Forward Protocol Specification v1.5, "Handshake Messages").
package struct ForwardStream: MessageStream {
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
  package private(set) var isTooLarge = false

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

  package var heldBytes: Int { held.count + output.count }
  package var hasMessage: Bool { wholeEnd > 0 }
  /// Packed events say their length; what follows them has less than a read.
  package var messageBytes: Int? { framer.neededBytes > held.count + 1 ? framer.neededBytes - wholeEnd : nil }
  package var mustClose: Bool { if case .closing = state { true } else { false } }

  package mutating func takeOutput() -> [UInt8] {
    defer { output = [] }
    return output
  }

  package mutating func takeMessage() -> [UInt8]? {
    guard hasMessage else { return nil }
    var whole: [UInt8] = []
    if wholeEnd == held.count { swap(&whole, &held) } else { whole = Array(held[..<wholeEnd]) }
    forgetWhole()
    return whole
  }

  /// A message that is not whole is its sender's, who has no acknowledgement.
  package mutating func end() {}

  private mutating func forgetWhole() {
    held.removeFirst(min(wholeEnd, held.count))
    (wholeEnd, framer) = (0, MsgPackFramer(from: 0))
  }

  package mutating func consume(_ chunk: Span<UInt8>, from start: Int) -> Int {
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

/// The secret of `forward.sharedKeyFile`, and the handshake with it. Both ends prove that they know it; it is not sent.
struct SharedKey {
  private static let host = "prismd"

  let text: [UInt8]

  /// HELO.
  static func hello(nonce: [UInt8]) -> [UInt8] {
    var result: [UInt8] = [0x92]
    result.append(msgpack: "HELO")
    result.append(0x83)
    result.append(msgpack: "nonce")
    result += [0xC4, UInt8(nonce.count)] + nonce
    result.append(msgpack: "auth")
    result.append(msgpack: "")
    result.append(msgpack: "keepalive")
    result.append(0xC3)
    return result
  }

  /// - Returns: PONG, and whether the other end knows the key.
  func answer(toPing ping: [UInt8], nonce: [UInt8]) -> (pong: [UInt8], isKnown: Bool) {
    guard let (host, salt, digest) = Self.parts(ping), let expected = self.digest(salt, host, nonce),
      Hashing.areEqual(expected, digest)
    else { return (Self.pong(isKnown: false, "the shared key is another one", []), false) }
    guard let own = self.digest(salt, Array(Self.host.utf8), nonce) else {
      return (Self.pong(isKnown: false, "the digest can't be made", []), false)
    }
    return (Self.pong(isKnown: true, "", own), true)
  }

  private func digest(_ salt: [UInt8], _ host: [UInt8], _ nonce: [UInt8]) -> [UInt8]? {
    guard let hash = try? Hashing.sha512(salt + host + nonce + text) else { return nil }
    return Array(Hex.encode(hash).utf8)
  }

  private static func pong(isKnown: Bool, _ reason: String, _ digest: [UInt8]) -> [UInt8] {
    var result: [UInt8] = [0x95]
    result.append(msgpack: "PONG")
    result.append(isKnown ? 0xC3 : 0xC2)
    result.append(msgpack: reason)
    result.append(msgpack: host)
    result.append(msgpack: String(decoding: digest, as: UTF8.self))
    return result
  }

  /// `["PING", host, salt, digest, user, password]`; user and password are not used.
  private static func parts(_ ping: [UInt8]) -> (host: [UInt8], salt: [UInt8], digest: [UInt8])? {
    var reader = MsgPackReader(0..<ping.count)
    guard case .array(6) = try? reader.next(ping.span) else { return nil }
    var texts: [[UInt8]] = []
    for _ in 0..<4 {
      switch try? reader.next(ping.span) {
      case .string(let range), .binary(let range): texts.append(Array(ping[range]))
      default: return nil
      }
    }
    return texts[0] == Array("PING".utf8) ? (texts[1], texts[2], texts[3]) : nil
  }
}

extension [UInt8] {
  /// A string of at most 65,535 bytes.
  mutating func append(msgpack text: String) {
    let bytes = Array(text.utf8)
    switch bytes.count {
    case 0..<32: append(0xA0 | UInt8(bytes.count))
    case 32..<256: self += [0xD9, UInt8(bytes.count)]
    default: self += [0xDA, UInt8(truncatingIfNeeded: bytes.count >> 8), UInt8(truncatingIfNeeded: bytes.count)]
    }
    self += bytes
  }
}
