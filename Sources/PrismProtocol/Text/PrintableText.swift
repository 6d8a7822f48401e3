import PrismBase

extension String {
  /// One line without control characters: each is shown as `\u{1b}` (`OutputText`).
  public var printable: String { OutputText.line(self) }

  /// The same, but line feeds stay.
  public var printableLines: String { OutputText.lines(self) }

  /// JSON text on one line without control characters, of the same value.
  public var printableJSON: String { OutputText.json(self) }
}

extension JSONValue {
  /// The same tree with every string and key printable, for people. JSON output does not need it: `text` and
  /// `prettyText` escape control characters, and lose nothing.
  /// - Parameter linesOf: keys of strings that are several lines.
  public func printable(linesOf keys: Set<String> = ["text"]) -> JSONValue {
    switch self {
    case .null, .bool, .number: self
    case .string(let text): .string(text.printable)
    case .array(let elements): .array(elements.map { $0.printable(linesOf: keys) })
    case .object(let members):
      .object(
        members.map { member in
          if keys.contains(member.key), let text = member.value.string {
            return Member(member.key, .string(text.printableLines))
          }
          return Member(member.key.printable, member.value.printable(linesOf: keys))
        })
    }
  }
}

extension String {
  /// At most `bytesMax` bytes of UTF-8, cut between characters.
  package func cut(atBytes bytesMax: Int) -> String {
    guard utf8.count > bytesMax else { return self }
    var result = ""
    var bytes = 0
    for character in self {
      bytes += character.utf8.count
      if bytes > bytesMax { break }
      result.append(character)
    }
    return result
  }
}
