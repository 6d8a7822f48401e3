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

  public static let fields: [ControlField<RefusedRecordReport>] = [
    .init("number", \.number), .init("namespace", \.namespace), .init("table", \.table), .init("id", \.id),
    .init(ifPresent: "serverId", \.serverId), .init("change", \.change), .init("version", \.version),
    .init("time", \.time), .init("message", \.message), .init("bytes", \.bytes),
  ]
}
