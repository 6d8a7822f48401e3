extension String {
  /// Without white space, control characters and zero bytes at both ends.
  public var trimmed: String {
    let isBlank: (Unicode.Scalar) -> Bool = { $0 <= " " }
    let scalars = unicodeScalars.drop(while: isBlank)
    return String(String.UnicodeScalarView(scalars.reversed().drop(while: isBlank).reversed()))
  }
}
