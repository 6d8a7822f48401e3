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
  package var isASCIIAlphanumeric: Bool {
    (0x30...0x39).contains(self) || (0x41...0x5A).contains(self) || (0x61...0x7A).contains(self)
  }
}
