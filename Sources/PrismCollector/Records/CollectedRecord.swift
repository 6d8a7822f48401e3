import PrismProtocol

/// A record as the collector keeps it.
struct CollectedRecord: Sendable, Equatable {
  var serverID: Int64
  var namespace: NamespaceName
  var table: String
  var device: String
  /// The id that the device's program gave.
  var id: String
  /// A JSON object, as text.
  var fields: [UInt8]
  /// Counts the changes on the device.
  var version: Int64
  /// When the device changed it last; milliseconds since 1970, by its clock.
  var changedTime: Int64

  /// A JSON object.
  var jsonText: [UInt8] {
    let head: JSONValue = [
      "serverId": .string(String(serverID)), "namespace": .string(namespace.text), "table": .string(table),
      "device": .string(device), "id": .string(id), "version": .int(version), "changedTime": .int(changedTime),
    ]
    return head.bytes.dropLast() + Array(#","fields":"#.utf8) + fields + [UInt8(ascii: "}")]
  }
}
