import PrismProtocol

@testable import PrismAdmission
@testable import PrismInputs
@testable import PrismPacket

#if FUZZ
  import FuzzSupport
#endif

/// A connection of Fluent's forward protocol, whole and in pieces: both ways must find the same messages.
#if FUZZ
  @main
#endif
enum MsgPackHarness: FuzzHarness {
  static let repeatsInput = false

  static func run(_ input: ArraySlice<UInt8>) {
    let whole = messages(input, pieceBytes: max(1, input.count))
    precondition(whole == messages(input, pieceBytes: 7), "messages that come in pieces are others")
    for message in whole { read(message) }
  }

  private static func messages(_ input: ArraySlice<UInt8>, pieceBytes: Int) -> [[UInt8]] {
    var (stream, rest, found): (ForwardStream, ArraySlice<UInt8>, [[UInt8]]) = (ForwardStream(key: nil), input, [])
    while !rest.isEmpty, !stream.mustClose {
      let piece = Array(rest.prefix(pieceBytes))
      let used = stream.consume(piece.span, from: 0)
      precondition(used > 0 || stream.hasMessage, "the stream takes nothing")
      rest = rest.dropFirst(used)
      if let message = stream.takeMessage() { found += split(message) }
    }
    return found
  }

  /// Messages that were taken together.
  private static func split(_ bytes: [UInt8]) -> [[UInt8]] {
    var (start, found): (Int, [[UInt8]]) = (0, [])
    while start < bytes.count {
      var framer = MsgPackFramer(from: start)
      guard let isWhole = try? framer.advance(bytes.span), isWhole else { fatalError("a message is not whole") }
      found.append(Array(bytes[start..<framer.position]))
      start = framer.position
    }
    return found
  }

  private static func read(_ message: [UInt8]) {
    if let result = try? ForwardMessage(from: 0, of: message.span) {
      var events = ForwardEvents(result, message)
      for _ in 0..<50 where events.next() != nil && !events.members.isEmpty {
        precondition(
          (try? JSONValue(parsing: [0x7B] + events.members + [0x7D], allowsDuplicateKeys: true))?.object != nil,
          "a record is no JSON object")
      }
    }
    _ = SharedKey(text: [1]).answer(toPing: message, nonce: [2])
  }
}
