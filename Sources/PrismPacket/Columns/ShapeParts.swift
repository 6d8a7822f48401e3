import Glibc

/// The parts of a shape's text with some of its members, for a question that asks for no others.
struct ShapeParts {
  /// In their order. With their values they are an object again.
  private(set) var parts: [Range<Int>]

  /// - Parameters:
  ///   - text: of the shape, with a mark for each value.
  ///   - keys: of the top-level members that stay. One with an escape in its key stays, too.
  /// - Returns: nil: the text is no object without spaces between its members, or it is common information.
  init?(_ bytes: UnsafeBufferPointer<UInt8>, _ text: Range<Int>, _ keys: [[UInt8]]) {
    guard !text.isEmpty, bytes[text.lowerBound] == UInt8(ascii: "{") else { return nil }
    var member = text.lowerBound + 1
    parts = [text.lowerBound..<member]
    while true {
      guard let close = Self.stringEnd(bytes, member, text.upperBound) else { return nil }
      let key = UnsafeBufferPointer(rebasing: bytes[member + 1..<close - 1])
      guard !key.elementsEqual("$common".utf8), let end = Self.memberEnd(bytes, close..<text.upperBound) else {
        return nil
      }
      if key.contains(UInt8(ascii: "\\")) || keys.contains(where: { key.elementsEqual($0) }) {
        // With the comma before it, unless it is the first one.
        add((parts[0].count == 1 && parts.count == 1 ? member : member - 1)..<end)
      }
      member = end + 1
      guard bytes[end] == UInt8(ascii: ",") else {
        add(end..<text.upperBound)
        return
      }
    }
  }

  private mutating func add(_ part: Range<Int>) {
    if let last = parts.last, last.upperBound == part.lowerBound {
      parts[parts.count - 1] = last.lowerBound..<part.upperBound
    } else {
      parts.append(part)
    }
  }

  /// - Parameter start: of the opening quote.
  private static func stringEnd(_ bytes: UnsafeBufferPointer<UInt8>, _ start: Int, _ end: Int) -> Int? {
    guard start < end, bytes[start] == UInt8(ascii: "\""), let base = bytes.baseAddress else { return nil }
    return JSONToken.stringEnd(base + start + 1, base + end).map { $0 - base }
  }

  /// The comma or brace behind a member. - Parameter rest: behind its key.
  private static func memberEnd(_ bytes: UnsafeBufferPointer<UInt8>, _ rest: Range<Int>) -> Int? {
    var (at, depth) = (rest.lowerBound, 0)
    while at < rest.upperBound {
      switch bytes[at] {
      case UInt8(ascii: "\""):
        guard let close = stringEnd(bytes, at, rest.upperBound) else { return nil }
        at = close
        continue
      case UInt8(ascii: "{"), UInt8(ascii: "["): depth += 1
      case UInt8(ascii: "}") where depth == 0, UInt8(ascii: ",") where depth == 0: return at
      case UInt8(ascii: "}"), UInt8(ascii: "]"): depth -= 1
      default: break
      }
      at += 1
    }
    return nil
  }
}
