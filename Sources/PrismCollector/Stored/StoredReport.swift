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
  /// Of one without an id, among the reports of its packet that are stored together, from 0: it tells equal ones apart.
  var place = 0
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

  /// Of the meta and the payload.
  var bytes: Int { meta.count + (payload?.count ?? 0) }

  /// As `GET /reports` shows it, in JSON. The meta is as it came.
  var jsonText: [UInt8] {
    var text: [UInt8] = []
    appendJSON(to: &text)
    text.append(UInt8(ascii: "}"))
    return text
  }

  /// The same without its closing brace.
  func appendJSON(to text: inout [UInt8]) {
    text += #"{"id":\#(id)"#.utf8
    for (name, value) in [
      (#","device":"#, device), (#","namespace":"#, namespace), (#","kind":"#, kind), (#","type":"#, type),
      (#","reportId":"#, reportID),
    ] as [(StaticString, String)] {
      name.withUTF8Buffer { text.append(contentsOf: $0) }
      JSONValue.append(quoted: value, to: &text)
    }
    text += #","createdTime":\#(createdTime.map { String($0) } ?? "null"),"receivedTime":\#(receivedTime)"#.utf8
    text += #","packetId":"#.utf8
    JSONValue.append(quoted: packetID, to: &text)
    text += #","chainBroken":\#(chainIsBroken),"payloadBytes":\#(payloadBytes.map { String($0) } ?? "null")"#.utf8
    text += (isDamaged ? #","damaged":true,"meta":"# : #","meta":"#).utf8
    text += meta
  }
}
