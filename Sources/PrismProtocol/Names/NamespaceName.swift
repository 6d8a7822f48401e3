import PrismBase

/// A reporter's world: 1 to 64 of `A-Z a-z 0-9 _ -`, the first a letter or digit (docs/configuration.md).
public struct NamespaceName: Hashable, Sendable, Comparable, CustomStringConvertible {
  /// The name as it is configured.
  public let text: String

  /// The built-in namespace, for monitoring; every other one is a business line.
  public static let prism = NamespaceName(unchecked: "prism")

  /// nil when `text` is no namespace's name.
  public init?(_ text: String) {
    guard text.isName(bytesMax: 64, punctuation: "_-") else { return nil }
    self.text = text
  }

  private init(unchecked text: String) { self.text = text }

  /// Whether a text is a name, or a pattern of names with `*` for any text and `?` for any character.
  public static func isPattern(_ text: String) -> Bool {
    text.isName(bytesMax: 64, punctuation: "_-*?", firstIsAlphanumeric: false)
      && (text.utf8.first?.isASCIIAlphanumeric ?? false || "*?".contains(text.prefix(1)))
  }

  /// Whether it is a business line; only `prism` is not.
  public var isBusiness: Bool { self != .prism }
  public var description: String { text }
  public static func < (a: Self, b: Self) -> Bool { a.text < b.text }
}

extension String {
  /// Whether this is 1 to `bytesMax` of `A-Z a-z 0-9` and `punctuation`.
  package func isName(bytesMax: Int, punctuation: StaticString, firstIsAlphanumeric: Bool = true) -> Bool {
    guard (1...bytesMax).contains(utf8.count), let first = utf8.first else { return false }
    if firstIsAlphanumeric && !first.isASCIIAlphanumeric { return false }
    return punctuation.withUTF8Buffer { allowed in
      utf8.allSatisfy { $0.isASCIIAlphanumeric || allowed.contains($0) }
    }
  }
}

extension UInt8 {
  package var isASCIIAlphanumeric: Bool { isASCIIDigit || isASCIILetter }
}
