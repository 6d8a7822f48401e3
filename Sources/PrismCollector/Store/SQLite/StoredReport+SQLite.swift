import PrismProtocol
import PrismStore

extension StoredReport {
  /// Columns: id, stream, packet, type, chain_broken, received_time, created_time, report_id, sum, meta, length of the
  /// payload, and where `hasPayload`, the payload.
  /// - Returns: nil: it names no packet.
  init?(checking row: SQLiteStatement, _ stream: StreamID, type: String, hasPayload: Bool) {
    guard let packet = PacketID(bytes: row.bytes(2)) else { return nil }
    let head = PacketDatabase.ReportHead(
      stream: row.int64(1), packet: row.bytes(2), namespace: stream.namespace, chainIsBroken: row.int(4) != 0,
      receivedTime: row.int64(5))
    self.init(
      id: row.int64(0), device: stream.device, namespace: stream.namespace.text, kind: stream.kind.rawValue, type: type,
      reportID: row.text(7), createdTime: row.isNull(6) ? nil : row.int64(6), receivedTime: row.int64(5),
      packetID: packet.description, chainIsBroken: head.chainIsBroken, meta: row.bytes(9),
      payloadBytes: row.isNull(10) ? nil : row.int(10), payload: nil)
    var sum = ReportSum(
      head, id: id, type: row.int64(3), created: createdTime, reportID: row.blob(7), meta: row.blob(9),
      payloadBytes: payloadBytes)
    isDamaged = !sum.isRest(of: row.int64(8))
    if hasPayload, payloadBytes != nil {
      sum.add(payload: row.blob(11))
      isDamaged = sum.value != row.int64(8)
      if !isDamaged { payload = row.bytes(11) }
    }
    if isDamaged { meta = [] }
  }
}
