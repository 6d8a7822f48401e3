import PrismBase
package import PrismProtocol

/// Which reports are erased: those with a value of a field. Orders and receipts have the value's SHA-256 in its place, as they stay
/// where no byte of it may.
package struct ErasedValue: Sendable, Equatable {
  private static let mark = "sha256:"

  private let path: [[UInt8]]
  private let digest: [UInt8]
  /// The condition had the digest, not the value.
  package let isDigest: Bool
  /// `customer.id = sha256:` and 64 hexadecimal digits: the same as an argument.
  package let text: String

  /// - Parameter condition: its value may be such a digest itself.
  package init(_ condition: MetaCondition) throws(PacketError) {
    path = condition.path.map { Array($0.utf8) }
    let given = condition.value.hasPrefix(Self.mark) ? Hex.decode(condition.value.dropFirst(Self.mark.count).utf8) : nil
    isDigest = given?.count == 32
    digest = if let given, isDigest { given } else { try Hashing.sha256(Array(condition.value.utf8)) }
    text = "\(MetaCondition.text(of: condition.path)) = \(Self.mark)\(Hex.encode(digest))"
  }

  /// A text in a note that stays when its value is erased.
  package static func noted(_ text: String) -> String {
    mark + ((try? Hashing.sha256(Array(text.utf8))).map { Hex.encode($0) } ?? "")
  }

  /// Whether a meta has the value: a text, or a number, `true`, `false` or `null` as it is written.
  package func isIn(_ meta: [UInt8]) -> Bool {
    let span = meta.span
    guard case .field(let field) = MetaField.find(path, in: span), field.kind != .list, field.kind != .object,
      let found = try? Hashing.sha256(Array(field.bytes(in: span)))
    else { return false }
    return found == digest
  }
}
