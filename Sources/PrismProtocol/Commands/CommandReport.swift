/// A command as `prismctl command list` shows it.
public struct CommandReport: Sendable {
  /// The id of its record.
  public let id: String
  /// Its name; nil if it can't be read.
  public let name: String?
  /// nil: the device has not looked at it.
  public let answer: CommandAnswer?

  /// - Parameter record: as the ingest socket sends it.
  public init(record: JSONValue) {
    let fields = record["fields"] ?? .null
    (id, name, answer) = (record["id"]?.string ?? "", fields["name"]?.string, CommandAnswer(fields: fields))
  }
}
