/// The rows and counts that are left of a namespace when a program starts.
public struct NamespaceRemains: Sendable {
  /// By key.
  public var notes: [String: [UInt8]]
  /// Some wait, or are in a packet that was not settled.
  public var hasReports: Bool

  public init(notes: [String: [UInt8]], hasReports: Bool) { (self.notes, self.hasReports) = (notes, hasReports) }

  /// Of one that never stored anything.
  public static let none = Self(notes: [:], hasReports: false)
}
