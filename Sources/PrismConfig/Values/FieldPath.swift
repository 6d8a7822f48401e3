/// A path to members of a meta: keys joined with dots, `*` for any member or element. `user.email` also means a member
/// whose key is `user.email`.
public struct FieldPath: Sendable, Hashable {
  /// The most bytes of a path, and the most keys.
  public static let bytesMax = 256, keysMax = 16

  /// As it was written.
  public let text: String
  /// From the outermost to the innermost.
  public let keys: [String]

  /// Any member of a meta.
  static let any = FieldPath("*")!

  /// nil unless the text is of 1 to `bytesMax` bytes, of at most `keysMax` keys, and no key is empty.
  public init?(_ text: String) {
    let keys = text.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
    guard text.isPrintable(bytesMax: Self.bytesMax), keys.count <= Self.keysMax, !keys.contains("") else { return nil }
    (self.text, self.keys) = (text, keys)
  }
}
