/// The bearer tokens of a file: one a line, at least 16 bytes of visible ASCII, or `sha256:` with the 64 hexadecimal digits of
/// a token's SHA-256. A line that begins with `#` is a comment; an empty line is nothing. Any other line is a fault of the
/// whole file, so that no word of a comment is ever a token (docs/collector.md, "Tokens").
package struct TokenList: Equatable {
  package static let tokenBytesMin = 16
  private static let hashPrefix = Array("sha256:".utf8)

  package enum Entry: Equatable {
    case token([UInt8])
    /// 64 lowercase hexadecimal digits.
    case hash(String)
  }

  package let entries: [Entry]

  /// - Throws: the number of the first line that is no token, and the reason. Its text is not shown: it may be a token.
  package init(_ bytes: [UInt8]) throws(FileFault) {
    var entries: [Entry] = []
    for (index, line) in bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).enumerated() {
      let line = line.last == UInt8(ascii: "\r") ? line.dropLast() : line
      if line.isEmpty || line.first == UInt8(ascii: "#") { continue }
      do throws(FileFault) { entries.append(try Self.entry(line)) } catch {
        throw FileFault("has in line \(index + 1) \(error.reason)")
      }
    }
    self.entries = entries
  }

  private static func entry(_ line: ArraySlice<UInt8>) throws(FileFault) -> Entry {
    guard line.allSatisfy({ (UInt8(ascii: "!")...UInt8(ascii: "~")).contains($0) }) else {
      throw FileFault(
        "text that is not one token of visible ASCII characters; write one token a line, and a comment in a line that begins with #"
      )
    }
    if line.starts(with: hashPrefix) {
      let digits = String(decoding: line.dropFirst(hashPrefix.count), as: UTF8.self).lowercased()
      guard digits.utf8.count == 64, digits.allSatisfy(\.isHexDigit) else {
        throw FileFault("a hash that is not sha256: with 64 hexadecimal digits; make one with sha256sum")
      }
      return .hash(digits)
    }
    guard line.count >= tokenBytesMin else {
      throw FileFault(
        "a token of \(line.count) bytes; at least \(tokenBytesMin) are needed: make one with `openssl rand -hex 16`"
      )
    }
    return .token(Array(line))
  }
}
