/// Reports that their sender hands over again, all of them, until it has an answer: their ids are `prefix` and a number.
///
/// Where one commit stores all of them, the store remembers the run in place of an id for each. Else it remembers each id,
/// and that it did. So a run is stored once in any case.
public struct ReportIDRun: Sendable, Hashable {
  /// Ends with another character than a digit.
  public let prefix: ReportID
  /// The first number.
  public let first: Int
  /// The numbers from `first` on.
  public let count: Int

  /// The same reports make the same run whenever they are handed over. - Returns: nil if an id would be too long.
  public init?(_ prefix: ReportID, first: Int, count: Int) {
    guard prefix.numbered(first + count) != nil else { return nil }
    (self.prefix, self.first, self.count) = (prefix, first, count)
  }
}
