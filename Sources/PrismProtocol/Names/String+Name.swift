extension String {
  /// Whether this is 1 to `bytesMax` of `A-Z a-z 0-9` and `punctuation`.
  func isName(bytesMax: Int, punctuation: StaticString, firstIsAlphanumeric: Bool = true) -> Bool {
    guard (1...bytesMax).contains(utf8.count), let first = utf8.first else { return false }
    if firstIsAlphanumeric && !first.isASCIIAlphanumeric { return false }
    return punctuation.withUTF8Buffer { allowed in
      utf8.allSatisfy { $0.isASCIIAlphanumeric || allowed.contains($0) }
    }
  }
}

extension UInt8 {
  /// Whether it is a letter or a digit of ASCII.
  package var isASCIIAlphanumeric: Bool {
    (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(self) || (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(self)
      || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(self)
  }
}
