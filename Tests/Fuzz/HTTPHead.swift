@testable import PrismLinux

#if FUZZ
  import FuzzSupport
#endif

/// Heads and chunked bodies of HTTP requests, read as a whole and in pieces: both ways must come to the same.
#if FUZZ
  @main
#endif
enum HTTPHeadHarness: FuzzHarness {
  static func run(_ input: ArraySlice<UInt8>) {
    guard let end = input.firstIndex(of: 0) else {
      _ = HTTPHead.isRequestLine(input)
      _ = try? HTTPHead(input)
      return
    }
    // A head, a zero byte, and what follows it.
    _ = try? HTTPHead(input[..<end])
    let body = input[(end + 1)...]
    precondition(
      read(body, pieceBytes: max(1, body.count)) == read(body, pieceBytes: 7), "a chunked body in pieces is another")
  }

  private struct Read: Equatable {
    var chunked = ChunkedBody()
    var body: [UInt8] = []
  }

  private static func read(_ input: ArraySlice<UInt8>, pieceBytes: Int) -> Read? {
    var (result, rest) = (Read(), input)
    while !rest.isEmpty, !result.chunked.isDone {
      let piece = Array(rest.prefix(pieceBytes))
      var position = 0
      do {
        try result.chunked.consume(piece.span, &position, into: &result.body, bodyBytesMax: .max)
      } catch { return nil }
      rest = rest.dropFirst(pieceBytes)
    }
    return result
  }
}
