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
    let isBlank: (Unicode.Scalar) -> Bool = { $0 <= " " }
    let scalars = unicodeScalars.drop(while: isBlank)
    return String(String.UnicodeScalarView(scalars.reversed().drop(while: isBlank).reversed()))
  }
}

extension String {
  /// Whether it has visible ASCII characters only, from `!` to `~`.
  public var isVisibleASCII: Bool { utf8.allSatisfy { (UInt8(ascii: "!")...UInt8(ascii: "~")).contains($0) } }
}
