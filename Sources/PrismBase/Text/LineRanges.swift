import Glibc

/// The places of a text's lines, found one after the other without copies. A line feed ends a line and is no part of it; what
/// follows the last one is a line, too, even if it is empty.
public struct LineRanges: Sequence, IteratorProtocol {
  private let text: [UInt8]
  /// nil: the last line was returned.
  private var start: Int? = 0

  public init(_ text: [UInt8]) { self.text = text }

  public mutating func next() -> Range<Int>? {
    guard let begin = start else { return nil }
    let end = lineFeed(from: begin)
    start = end.map { $0 + 1 }
    return begin..<(end ?? text.count)
  }

  private func lineFeed(from begin: Int) -> Int? {
    text.withUnsafeBytes { text in
      guard begin < text.count, let base = text.baseAddress else { return nil }
      return memchr(base + begin, Int32(UInt8(ascii: "\n")), text.count - begin).map { UnsafeRawPointer($0) - base }
    }
  }
}
