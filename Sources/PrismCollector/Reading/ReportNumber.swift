/// The number that one report has in a field of its meta.
struct ReportNumber: Sendable, Equatable {
  /// The begin of its bucket, milliseconds since 1970, of the collector's clock.
  var time: Int64
  /// Empty where nothing is grouped by, or the meta has no such field.
  var group: String
  var value: Double
}
