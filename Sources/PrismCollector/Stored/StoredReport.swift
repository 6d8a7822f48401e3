import PrismProtocol

struct StoredReport: Sendable, Equatable {
  var id: Int64
  var device: String, namespace: String, kind: String
  var type: String, reportID: String
  /// Milliseconds since 1970, of the device's clock; nil if the meta has no such time.
  var createdTime: Int64?
  /// Milliseconds since 1970, of the collector's clock.
  var receivedTime: Int64
  var packetID: String
  var chainIsBroken: Bool
  /// JSON text.
  var meta: [UInt8]
  /// nil: of the kind `meta`.
  var payloadBytes: Int?
  /// Only of `report(_:)`.
  var payload: [UInt8]?
  /// Its payload is not what was stored, and is left out.
  var isDamaged = false

  /// When it happened by the collector's clock: the created time, as it was corrected for the device's clock. If the device did not
  /// know the time, when it came.
  var happenedTime: Int64 {
    let created = createdTime.flatMap { $0 < PacketID.firstSetTime ? nil : $0 }
    return min(created ?? receivedTime, receivedTime)
  }

  /// As `GET /reports` shows it, in JSON. The meta is as it came.
  var jsonText: [UInt8] {
    let head: JSONValue = [
      "id": .int(id), "device": .string(device), "namespace": .string(namespace), "kind": .string(kind),
      "type": .string(type), "reportId": .string(reportID), "createdTime": createdTime.map { .int($0) } ?? .null,
      "receivedTime": .int(receivedTime), "packetId": .string(packetID), "chainBroken": .bool(chainIsBroken),
      "payloadBytes": payloadBytes.map { .int($0) } ?? .null,
    ]
    let tail = isDamaged ? #","damaged":true,"meta":"# : #","meta":"#
    return Array(head.text.utf8.dropLast()) + Array(tail.utf8) + meta + [UInt8(ascii: "}")]
  }
}
