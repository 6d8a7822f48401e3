/// The common information of one session, prepared once: JSON members (`"A":"x","B":"y"`, no braces) that the store
/// holds once and splices into each meta when a packet is built.
///
/// It has neither `MONITOR_TYPE`, `REPORT_ID`, `CREATE_TIME` nor `IS_BIZ`: those are a row's own (`MetaSplicing`).
/// A class, so that the store can tell by identity which one it has stored already.
public final class CommonContext: Sendable {
  /// An object that lives as long as its context. It is referenced weakly, because reference counts of an object with
  /// weak references are slower.
  public final class Lifetime: Sendable {}

  /// JSON members without braces.
  public let members: [UInt8]
  /// Ends with the context.
  public let lifetime = Lifetime()
  public init(members: [UInt8]) { self.members = members }
}
