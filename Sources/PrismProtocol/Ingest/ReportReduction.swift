/// Makes one row a window and group of the reports of a type (docs/recorder.md, "Reduce").
public struct ReportReduction: Sendable, Equatable {
  /// The part of a field's numbers that a row says.
  public enum Field: String, Sendable, CaseIterable {
    /// Count, sum, least and greatest.
    case sum
    /// These and percentiles.
    case histogram
  }

  /// Fields, and members of `by`, at most.
  public static let membersMax = 8
  /// Groups of a namespace that are open at a time; further ones are counted in the group `others` of their type and user.
  public static let groupsMax = 1000
  /// The member of a row that says the numbers. Of reports only those of an input that counts some together have it.
  public static let key = "REDUCED"

  /// A type, or a pattern of types.
  public var type = ReportType.any
  /// The window, 1 to 3600 s, from the first report on; 0: reports of the type are rows of their own.
  public var seconds = 60
  /// Members whose values make a group; empty: one group.
  public var by: [String] = []
  /// Members with numbers.
  public var fields: [String: Field] = [:]

  public init() {}
}
