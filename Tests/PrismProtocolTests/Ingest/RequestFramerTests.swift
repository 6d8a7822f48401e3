import PrismProtocol
import Testing

@Suite("The framer separates lines and payloads")
struct RequestFramerTests {
  /// The output, with pieces of a payload joined.
  enum Piece: Equatable {
    case line(String)
    case payload(String)
    case tooLong(String)
    case lost
  }

  /// Feeds `input` in chunks of `sizes`; a line `pN` is followed by N bytes of payload, a line `sN` by N to be skipped.
  private func frame(_ input: [UInt8], chunk size: Int, lineBytesMax: Int = 10) -> [Piece] {
    var framer = RequestFramer()
    var (pieces, payload): ([Piece], [UInt8]) = ([], [])
    for start in stride(from: 0, to: input.count, by: size) {
      let chunk = Array(input[start..<min(start + size, input.count)])
      var position = 0
      loop: while true {
        switch framer.next(chunk.span, &position, lineBytesMax: lineBytesMax) {
        case .line(let range): take(Array(chunk[range]), &framer, &pieces)
        case .heldLine: take(framer.takeHeld(), &framer, &pieces)
        case .payload(let range, let isLast):
          payload += chunk[range]
          if isLast {
            pieces.append(.payload(String(decoding: payload, as: UTF8.self)))
            payload = []
          }
        case .tooLong: pieces.append(.tooLong(String(decoding: framer.takeHeld(), as: UTF8.self)))
        case .lost: pieces.append(.lost)
        case .starved: break loop
        }
      }
    }
    return pieces
  }

  private func take(_ line: [UInt8], _ framer: inout RequestFramer, _ pieces: inout [Piece]) {
    let text = String(decoding: line, as: UTF8.self)
    pieces.append(.line(text))
    if text.first == "p", let bytes = Int(text.dropFirst()) { framer.expectPayload(bytes) }
    if text.first == "s", let bytes = Int(text.dropFirst()) { _ = framer.skip(bytes) }
  }

  @Test("the same comes out however the bytes are cut", arguments: [1, 2, 3, 5, 7, 16, 1000])
  func anyChunking(size: Int) {
    let input = Array("a\np5\nh\nllob\np0\n\ns3\nxyzc\n0123456789x\nabcdefghijklmnopq\nd\n".utf8)
    let expected: [Piece] = [
      .line("a"), .line("p5"), .payload("h\nllo"), .line("b"), .line("p0"), .payload(""), .line(""), .line("s3"),
      .line("c"), .tooLong("0123456789"), .tooLong("abcdefghij"), .line("d"),
    ]
    #expect(frame(input, chunk: size) == expected)
  }

  @Test("more than can be skipped cheaply is lost, and said once")
  func lost() {
    #expect(frame(Array("s99999999\nabc\ndef\n".utf8), chunk: 4) == [.line("s99999999")])
    let endless = [UInt8](repeating: 0x61, count: RequestFramer.skippedBytesMax + 100_000)
    #expect(frame(endless, chunk: 65_536) == [.tooLong("aaaaaaaaaa"), .lost])
  }

  @Test(
    "at the end it is known what was cut",
    arguments: [("a\n", RequestFramer.End.clean), ("a", .heldLine), ("p3\nab", .withinPayload), ("s3\nab", .clean)])
  func ends(input: String, end: RequestFramer.End) {
    var framer = RequestFramer()
    var position = 0
    let chunk = Array(input.utf8)
    var pieces: [Piece] = []
    while true {
      let event = framer.next(chunk.span, &position, lineBytesMax: 10)
      if event == .starved { break }
      if case .line(let range) = event { take(Array(chunk[range]), &framer, &pieces) }
    }
    #expect(framer.end() == end)
  }
}
