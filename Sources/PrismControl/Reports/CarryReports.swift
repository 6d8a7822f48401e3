public import PrismProtocol

/// A file of the answer to `carry`; its parts follow.
public struct CarriedFileReport: ControlMessage {
  /// Without a folder.
  public var name = ""
  /// Of the whole file.
  public var bytes = 0

  public init() {}
}

/// The sum at the end of the answer to `carry`.
public struct CarriedReport: ControlMessage {
  /// Packets, the reports in them, and the bytes of their files.
  public var packets = 0, reports = 0, bytes = 0

  public init() {}
}

/// The effect of one line of `receipts.ndjson`: the answer to `carry-settle` has one for each.
public struct SettledReport: ControlMessage {
  /// The packet.
  public var packetId = "?", namespace = "?", kind = "?"
  /// `delivered`, `waits`, `split`, `dead`, `kept` or `unknown`.
  public var state = "?"
  /// Of `kept`.
  public var cause: String?

  public init() {}

  public static func leavesOut(_ key: String) -> Bool { true }
}
