import PrismBase
import PrismProtocol

/// One connection of syslog without its socket: messages behind their length, or with a line feed at their end (RFC 6587). Each
/// message decides which.
package struct SyslogStream: MessageStream {
  /// A message as it is handed over: its length, whether it is cut, and its bytes.
  private static let cutMark: UInt32 = 1 << 31
  private static let batchBytes = 32 * 1024
  private static let lengthDigitsMax = 7

  private enum State {
    /// The bytes of the message may be its length.
    case opening
    case line
    case counted(left: Int)
    /// TLS or HTTP, which are not taken: a web page could report in the name of its browser.
    case refused
  }

  private var state = State.opening
  private var message: [UInt8] = []
  private var isCut = false
  private var whole: [UInt8] = []
  private var hasBegun = false, isFirst = true

  /// Nothing has come.
  package init() {}

  package var heldBytes: Int { message.count + whole.count }
  package var hasMessage: Bool { !whole.isEmpty }
  package var messageBytes: Int? { nil }
  package var mustClose: Bool { if case .refused = state { true } else { false } }
  package var isTooLarge: Bool { false }
  package mutating func takeOutput() -> [UInt8] { [] }

  package mutating func takeMessage() -> [UInt8]? {
    defer { whole = [] }
    return whole.isEmpty ? nil : whole
  }

  package mutating func consume(_ chunk: Span<UInt8>, from start: Int) -> Int {
    var position = start
    if !hasBegun, position < chunk.count {
      hasBegun = true
      if chunk[position] == 0x16 { state = .refused }
    }
    while position < chunk.count, whole.count < Self.batchBytes {
      switch state {
      case .opening:
        open(chunk[position])
        position += 1
      case .line:
        let end = (position..<chunk.count).first { chunk[$0] == UInt8(ascii: "\n") }
        append(chunk, position..<(end ?? chunk.count))
        position = end.map { $0 + 1 } ?? chunk.count
        if end != nil { finish() }
      case .counted(let left):
        let end = min(chunk.count, position + left)
        append(chunk, position..<end)
        state = .counted(left: left - (end - position))
        position = end
        if case .counted(0) = state { finish() }
      case .refused: return chunk.count
      }
    }
    return position
  }

  /// Nothing more comes: what came of a message is one.
  package mutating func end() {
    if case .counted = state { isCut = true }
    if !message.isEmpty, !mustClose { finish() }
  }

  private mutating func open(_ byte: UInt8) {
    let isBetween = message.isEmpty && [0, 10, 13, 32].contains(byte)
    if isBetween { return }
    if byte == UInt8(ascii: "\n") { return finish() }
    let digits = message.prefix(while: \.isASCIIDigit)
    message.append(byte)
    if digits.count == message.count - 1, digits.count <= Self.lengthDigitsMax {
      if byte.isASCIIDigit || byte == UInt8(ascii: " ") && !digits.isEmpty { return }
    } else if message.count == digits.count + 2, byte == UInt8(ascii: "<"),
      let length = Int(String(decoding: digits, as: UTF8.self)), length > 1
    {
      message = [byte]
      state = .counted(left: length - 1)
      return
    }
    state = .line
  }

  private mutating func append(_ chunk: Span<UInt8>, _ range: Range<Int>) {
    let room = Datagram.bytesMax - message.count
    message.append(copying: chunk, range.prefix(room))
    isCut = isCut || range.count > room
  }

  private mutating func finish() {
    defer { isFirst = false }
    if isFirst, case .line = state, isRequestLine {
      (state, message) = (.refused, [])
      return
    }
    let mark = UInt32(message.count) | (isCut ? Self.cutMark : 0)
    withUnsafeBytes(of: mark) { whole.append(contentsOf: $0) }
    whole += message
    (state, message, isCut) = (.opening, [], false)
  }

  /// As a browser begins: `POST /path HTTP/1.1`. A proxy's log line has such a line in its text.
  private var isRequestLine: Bool {
    let words = message.split(separator: .space, maxSplits: 3, omittingEmptySubsequences: false)
    return words.count == 3 && words[2].starts(with: "HTTP/".utf8)
      && words[0].allSatisfy { (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0) }
  }

  /// The messages that `takeMessage` gave together.
  static func messages(of whole: [UInt8]) -> [(bytes: [UInt8], isCut: Bool)] {
    var (rest, result): (ArraySlice<UInt8>, [(bytes: [UInt8], isCut: Bool)]) = (whole[...], [])
    while rest.count >= 4 {
      let mark = rest.withUnsafeBytes { $0.loadUnaligned(as: UInt32.self) }
      result.append((Array(rest.dropFirst(4).prefix(Int(mark & ~cutMark))), mark & cutMark != 0))
      rest = rest.dropFirst(4 + result[result.count - 1].bytes.count)
    }
    return result
  }
}
