public import PrismProtocol

/// Rows of a namespace that wait or are on their way, by type.
public struct TypeCounts: Sendable, Equatable {
  /// Metas by type.
  public var metas: [ReportType: Int] = [:]
  /// Payloads by type.
  public var payloads: [ReportType: Int] = [:]
  /// false: there were more rows than could be looked at; the counts are the least.
  public var isComplete = true

  public init() {}
}
