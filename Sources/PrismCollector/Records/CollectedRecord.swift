import PrismBase
import PrismPacket
import PrismProtocol

struct CollectedRecord: Sendable, Equatable {
  /// The row's number: the server's id of a record that a device made.
  var number: Int64
  var namespace: NamespaceName
  var table: String
  /// Empty: a record of the fleet.
  var device: String
  /// The id that the device's program, or the server's writer, gave.
  var id: String
  /// A JSON object, as text.
  var fields: [UInt8]
  /// Counts the changes.
  var version: Int64
  /// When it was changed last; milliseconds since 1970.
  var changedTime: Int64
  /// The server made it: its id is the server's id.
  var isNamed = false
  /// The number of the server's newest change; 0: a device changed it last.
  var sequence: Int64 = 0
  /// The number with which the server made it; 0: a device did.
  var insertSequence: Int64 = 0
  /// Of the server's newest change, by its device.
  var fetch = RecordFetch()

  /// The id by which the server knows it.
  var serverID: String { isNamed ? id : String(number) }

  /// A JSON object.
  var jsonText: [UInt8] {
    let head: JSONValue = [
      "serverId": .string(serverID), "namespace": .string(namespace.text), "table": .string(table),
      "device": device.isEmpty ? .null : .string(device), "id": .string(id), "version": .int(version),
      "changedTime": .int(changedTime),
    ]
    return head.bytes.dropLast() + Array(#","fields":"#.utf8) + fields + [UInt8(ascii: "}")]
  }

  /// The same with what its device has in force, where the server changed it last.
  var fetchedText: [UInt8] {
    guard sequence > 0, !device.isEmpty else { return jsonText }
    let isPending = sequence > fetch.position
    var text = jsonText.dropLast() + Array(#","pending":\#(isPending)"#.utf8)
    if isPending, let reported = fetch.reported { text += Array(#","reported":"#.utf8) + reported }
    if !isPending, fetch.time > 0 { text += Array(#","fetchedTime":\#(fetch.time)"#.utf8) }
    return text + [UInt8(ascii: "}")]
  }

  /// The `ETag`: another one for another change. A device that fetches the record changes nothing of it.
  var tag: String {
    let digest = (try? Hashing.sha256(jsonText)) ?? []  // without memory: a tag that matches no other
    return "\"\(digest.isEmpty ? String(UInt64.random(in: 0 ... .max)) : Hex.encode(Array(digest.prefix(16))))\""
  }
}
