extension UInt8 {
  /// `0` to `9`.
  public var isASCIIDigit: Bool { UInt8(ascii: "0")...UInt8(ascii: "9") ~= self }

  /// `A` to `Z` and `a` to `z`.
  public var isASCIILetter: Bool {
    UInt8(ascii: "A")...UInt8(ascii: "Z") ~= self || UInt8(ascii: "a")...UInt8(ascii: "z") ~= self
  }

  /// A character of a token of HTTP, as a method or the name of a header (RFC 9110, 5.6.2).
  public var isHTTPToken: Bool {
    isASCIIDigit || isASCIILetter || "!#$%&'*+-.^_`|~".utf8.contains(self)
  }
}

extension String {
  /// Without white space, control characters and zero bytes at both ends.
  public var trimmed: String {
    // All bytes of what is not ASCII are larger.
    guard let first = utf8.firstIndex(where: { $0 > 32 }), let last = utf8.lastIndex(where: { $0 > 32 }) else {
      return ""
    }
    return String(self[first..<utf8.index(after: last)])
  }

  /// Whether it has visible ASCII characters only, from `!` to `~`.
  public var isVisibleASCII: Bool { utf8.allSatisfy { (UInt8(ascii: "!")...UInt8(ascii: "~")).contains($0) } }
}

/// A text that only the same bytes are equal to. Texts of devices are counted, grouped and found by it: of two Strings, Swift takes an é of
/// one scalar and an é of two for the same.
public struct ExactText: Hashable, Comparable, Sendable {
  /// As it came.
  public let text: String

  /// Takes any text.
  public init(_ text: String) { self.text = text }

  /// Byte by byte.
  public static func == (one: ExactText, other: ExactText) -> Bool { one.text.utf8.elementsEqual(other.text.utf8) }

  /// By their bytes.
  public static func < (one: ExactText, other: ExactText) -> Bool {
    one.text.utf8.lexicographicallyPrecedes(other.text.utf8)
  }

  /// Of the bytes.
  public func hash(into hasher: inout Hasher) {
    var text = text
    text.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
  }
}
