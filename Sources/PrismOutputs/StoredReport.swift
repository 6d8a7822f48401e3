import PrismProtocol

/// A report as a collector stores it, shows it, and hands it on.
package struct StoredReport: Sendable, Equatable {
  /// Of the store: ids rise in the order in which reports become visible.
  package var id: Int64
  /// Of its stream.
  package var device: String, namespace: String, kind: String
  /// As its program gave them; the daemon makes an id that is not given.
  package var type: String, reportID: String
  /// Milliseconds since 1970, of the device's clock; nil if the meta has no such time.
  package var createdTime: Int64?
  /// Milliseconds since 1970, of the collector's clock.
  package var receivedTime: Int64
  /// Of the packet that brought it.
  package var packetID: String
  /// Of one without an id, among the reports of its packet that are stored together, from 0: it tells equal ones apart.
  package var place = 0
  /// The packet before its own is missing.
  package var chainIsBroken: Bool
  /// JSON text.
  package var meta: [UInt8]
  /// nil: of the kind `meta`.
  package var payloadBytes: Int?
  /// Only of `report(_:)`.
  package var payload: [UInt8]?
  /// Its payload is not what was stored, and is left out.
  package var isDamaged = false

  package init(
    id: Int64, device: String, namespace: String, kind: String, type: String, reportID: String,
    createdTime: Int64? = nil, receivedTime: Int64, packetID: String, place: Int = 0, chainIsBroken: Bool,
    meta: [UInt8], payloadBytes: Int? = nil, payload: [UInt8]? = nil, isDamaged: Bool = false
  ) {
    (self.id, self.device, self.namespace, self.kind) = (id, device, namespace, kind)
    (self.type, self.reportID, self.createdTime, self.receivedTime) = (type, reportID, createdTime, receivedTime)
    (self.packetID, self.place, self.chainIsBroken, self.meta) = (packetID, place, chainIsBroken, meta)
    (self.payloadBytes, self.payload, self.isDamaged) = (payloadBytes, payload, isDamaged)
  }

  /// Of the meta and the payload.
  package var bytes: Int { meta.count + (payload?.count ?? 0) }

  /// As `GET /reports` shows it, in JSON. The meta is as it came.
  package var jsonText: [UInt8] {
    var text: [UInt8] = []
    appendJSON(to: &text)
    text.append(UInt8(ascii: "}"))
    return text
  }

  /// The same without its closing brace.
  package func appendJSON(to text: inout [UInt8]) {
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
