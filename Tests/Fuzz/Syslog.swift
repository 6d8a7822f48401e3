import PrismProtocol

@testable import PrismInputs

#if FUZZ
  import FuzzSupport
#endif

/// A connection of syslog, whole and in pieces: both ways must find the same messages, and each is a JSON object.
#if FUZZ
  @main
#endif
enum SyslogHarness: FuzzHarness {
  static let repeatsInput = false

  static func run(_ input: ArraySlice<UInt8>) {
    let whole = messages(input, pieceBytes: max(1, input.count))
    precondition(whole == messages(input, pieceBytes: 7), "messages that come in pieces are others")
    for bytes in whole + [Array(input)] {
      let members = SyslogMessage(bytes).members
      precondition((try? JSONValue(parsing: [0x7B] + members + [0x7D])) != nil, "a message is no JSON object")
    }
  }

  private static func messages(_ input: ArraySlice<UInt8>, pieceBytes: Int) -> [[UInt8]] {
    var (stream, rest, found): (SyslogStream, ArraySlice<UInt8>, [[UInt8]]) = (SyslogStream(), input, [])
    func take() { found += SyslogStream.messages(of: stream.takeMessage() ?? []).map(\.bytes) }
    while !rest.isEmpty, !stream.mustClose {
      let piece = Array(rest.prefix(pieceBytes))
      let used = stream.consume(piece.span, from: 0)
      precondition(used > 0 || stream.hasMessage, "the stream takes nothing")
      rest = rest.dropFirst(used)
      take()
    }
    stream.end()
    take()
    return found
  }
}
