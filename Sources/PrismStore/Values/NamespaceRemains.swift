/// The rows and counts that are left of a namespace when a program starts.
public struct NamespaceRemains: Sendable {
  /// By key.
  public var notes: [String: [UInt8]]
  /// Some wait, or are in a packet that was not settled.
  public var hasReports: Bool
  /// The same of changes of records.
  public var hasRecords: Bool

  public init(notes: [String: [UInt8]], hasReports: Bool, hasRecords: Bool = false) {
    (self.notes, self.hasReports, self.hasRecords) = (notes, hasReports, hasRecords)
  }

  /// Of one that never stored anything.
  public static let none = Self(notes: [:], hasReports: false)
}
