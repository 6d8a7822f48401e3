extension UInt8 {
  /// `A` to `Z` and `a` to `z`.
  public var isASCIILetter: Bool {
    UInt8(ascii: "A")...UInt8(ascii: "Z") ~= self || UInt8(ascii: "a")...UInt8(ascii: "z") ~= self
  }

  /// A character of a token of HTTP, as a method or the name of a header (RFC 9110, 5.6.2).
  public var isHTTPToken: Bool {
    UInt8(ascii: "0")...UInt8(ascii: "9") ~= self || isASCIILetter || "!#$%&'*+-.^_`|~".utf8.contains(self)
  }
}
