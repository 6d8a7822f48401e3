import Synchronization

/// The common information of one session, prepared once: JSON members (`"A":"x","B":"y"`, no braces) that the store
/// holds once and splices into each meta when a packet is built.
///
/// It has neither `MONITOR_TYPE`, `REPORT_ID`, `CREATE_TIME` nor `IS_BIZ`: those are a row's own (`MetaSplicing`).
/// A class with a number, so that the store can tell which one it has stored already.
public final class CommonContext: Sendable {
  /// An object that lives as long as its context. It is referenced weakly, because reference counts of an object with
  /// weak references are slower.
  public final class Lifetime: Sendable {}

  private static let lastNumber = Atomic<UInt64>(0)

  /// No other context of this run has it, nor a later one.
  public let number = lastNumber.add(1, ordering: .relaxed).newValue
  /// JSON members without braces.
  public let members: [UInt8]
  /// Ends with the context.
  public let lifetime = Lifetime()
  /// Reports with it are numbers that an input counted together: they are reduced though their type has no `reduce`.
  public let reduces: Bool
  public init(members: [UInt8], reduces: Bool = false) { (self.members, self.reduces) = (members, reduces) }
}
