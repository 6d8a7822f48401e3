/// One item that a reader of the feed gets.
public enum FeedItem: Sendable, Equatable {
  /// A report that was admitted or refused.
  case report(ReportEvent)
  /// This many reports came while the reader was behind; they are not shown.
  case skipped(Int)
}
