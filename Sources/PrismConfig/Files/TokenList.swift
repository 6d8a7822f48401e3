import PrismProtocol

/// The bearer tokens of a file: one a line, at least 16 bytes of visible ASCII, or `sha256:` with the 64 hexadecimal digits of
/// a token's SHA-256. A readers' file may also have `subject:` with who a proxy says that it is, and ` namespaces=` with names
/// and commas may follow. A line that begins with `#` is a
/// comment; an empty line is nothing. Any other line is a fault of the whole file, so that no word of a comment is ever a token (docs/collector.md, "Tokens").
package struct TokenList: Equatable {
  package static let tokenBytesMin = 16
  private static let subjectBytesMax = 256
  private static let hashPrefix = Array("sha256:".utf8), subjectPrefix = Array("subject:".utf8)

  package enum Secret: Hashable {
    case token([UInt8])
    /// 64 lowercase hexadecimal digits.
    case hash(String)
    /// The name that a proxy gives the reader (`assertion`).
    case subject(String)
  }

  package struct Entry: Equatable {
    package let secret: Secret
    /// Names with `*` and `?` that a reader is held to; nil: all.
    package let namespaces: [String]?
  }

  private static let listPrefix = Array(" namespaces=".utf8)
  private static let patternsMax = 64

  package let entries: [Entry]

  /// - Throws: the number of the first line that is no token, and the reason. Its text is not shown: it may be a token.
  package init(_ bytes: [UInt8], isOfReaders: Bool) throws(FileFault) {
    var (entries, known): ([Entry], [Secret: [String]?]) = ([], [:])
    for (index, line) in bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).enumerated() {
      let line = line.last == UInt8(ascii: "\r") ? line.dropLast() : line
      if line.isEmpty || line.first == UInt8(ascii: "#") { continue }
      do throws(FileFault) {
        let entry = try Self.entry(line, isOfReaders)
        guard known.updateValue(entry.namespaces, forKey: entry.secret) ?? entry.namespaces == entry.namespaces else {
          throw FileFault("the token of a line before with other namespaces; leave one of the two out")
        }
        entries.append(entry)
      } catch { throw FileFault("has in line \(index + 1) \(error.reason)") }
    }
    self.entries = entries
  }

  private static func entry(_ line: ArraySlice<UInt8>, _ isOfReaders: Bool) throws(FileFault) -> Entry {
    guard isOfReaders, let list = line.firstRange(of: listPrefix) else {
      return Entry(secret: try secret(line, isOfReaders), namespaces: nil)
    }
    let names = String(decoding: line[list.upperBound...], as: UTF8.self).split(
      separator: ",", omittingEmptySubsequences: false
    ).map(String.init)
    guard (1...patternsMax).contains(names.count), names.allSatisfy(NamespaceName.isPattern) else {
      throw FileFault(
        "a list that is not namespaces= with 1 to \(patternsMax) names of A-Z a-z 0-9 _ - and * or ?, with commas between"
      )
    }
    return Entry(secret: try secret(line[..<list.lowerBound], isOfReaders), namespaces: names)
  }

  private static func secret(_ line: ArraySlice<UInt8>, _ isOfReaders: Bool) throws(FileFault) -> Secret {
    guard line.allSatisfy({ (UInt8(ascii: "!")...UInt8(ascii: "~")).contains($0) }) else {
      throw FileFault(
        "text that is not one token of visible ASCII characters; write one token a line, and a comment in a line that begins with #"
      )
    }
    if line.starts(with: subjectPrefix) {
      // Anybody could guess it, if it were a sender's token.
      guard isOfReaders else { throw FileFault("a subject, which only files of readers and operators may have") }
      let subject = String(decoding: line.dropFirst(subjectPrefix.count), as: UTF8.self)
      guard (1...subjectBytesMax).contains(subject.utf8.count) else {
        throw FileFault("a subject that is not subject: with 1 to \(subjectBytesMax) visible ASCII characters")
      }
      return .subject(subject)
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
