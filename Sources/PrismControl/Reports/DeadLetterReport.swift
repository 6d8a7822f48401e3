public import PrismProtocol

/// A dead letter, in the answers to `dead-list` and `dead-show`.
public struct DeadLetterReport: ControlMessage {
  /// The number by which `dead-show`, `dead-requeue` and `dead-drop` name it.
  public var id = 0
  /// The report that was refused, and the packet that carried it.
  public var namespace = "?", kind = "?", type = "?", reportId = "?", packetId = "?"
  /// The collector's answer.
  public var status = 0
  /// The collector's message, and the time of the refusal (RFC 3339).
  public var message = "", time = ""
  /// Attempts to deliver it, and its size.
  public var attempts = 0, bytes = 0
  /// The user who reported it; nil if that is no longer known.
  public var userId: Int?
  /// Only of `dead-show`; the payload in base64.
  public var meta: JSONValue?, payload: String?

  public init() {}

  public static func leavesOut(_ key: String) -> Bool { true }
}

/// A record whose last change the server refused, in the answer to `dead-list`.
public struct RefusedRecordReport: ControlMessage {
  /// The number by which a page goes on (`afterRecord`).
  public var number = 0
  /// The record.
  public var namespace = "?", table = "?", id = "?"
  /// The server's id; nil if it gave no id.
  public var serverId: String?
  /// `insert`, `update` or `delete`: the change that the server does not have.
  public var change = "?"
  /// The number of changes of the record, and the time of the last one (RFC 3339).
  public var version = 0, time = ""
  /// The server's own words, and the bytes of the fields.
  public var message = "", bytes = 0

  public init() {}

  public static func leavesOut(_ key: String) -> Bool { true }
}
