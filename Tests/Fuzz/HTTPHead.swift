import FuzzSupport

@testable import PrismLinux

/// Heads and chunked bodies of HTTP requests, read as a whole and in pieces: both ways must come to the same.
@main
enum HTTPHeadHarness {
  static func main() { Fuzz.run { run($0) } }

  private static func run(_ input: ArraySlice<UInt8>) {
    guard let end = input.firstIndex(of: 0) else {
      _ = HTTPHead.isRequestLine(input)
      _ = try? HTTPHead(input)
      return
    }
    // A head, a zero byte, and what follows it.
    _ = try? HTTPHead(input[..<end])
    let body = input[(end + 1)...]
    let whole = read(body, pieceBytes: max(1, body.count))
    precondition(whole == read(body, pieceBytes: 7), "a chunked body in pieces is another")
  }

  private static func read(_ input: ArraySlice<UInt8>, pieceBytes: Int) -> ChunkedBody? {
    var (chunked, held, rest) = (ChunkedBody(), ArraySlice<UInt8>(), input)
    while !rest.isEmpty {
      held += rest.prefix(pieceBytes)
      rest = rest.dropFirst(pieceBytes)
      do { try chunked.consume(&held) } catch { return nil }
      if chunked.isDone { return chunked }
    }
    return chunked
  }
}
