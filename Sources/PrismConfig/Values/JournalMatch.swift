/// An entry of `journal.match`: an entry of the journal that meets all of it is reported.
public struct JournalMatch: Sendable, Equatable {
  /// The name of a systemd unit; nil: of any.
  public var unit: String?
  /// `SYSLOG_IDENTIFIER`; nil: any.
  public var identifier: String?
  /// 0 (emergency) to 7 (debug); nil: any.
  public var priority: ClosedRange<Int>?
  public init() {}
}
