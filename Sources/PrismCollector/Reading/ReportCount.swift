/// How many reports one bucket of time has of one group.
struct ReportCount: Sendable, Equatable {
  /// The begin of the bucket, milliseconds since 1970, of the collector's clock.
  var time: Int64
  /// Empty where nothing is grouped by, or the meta has no such field.
  var group: String
  var count: Int
}
