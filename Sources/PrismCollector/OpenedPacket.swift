import PrismProtocol

/// A packet that was decoded and checked: its rows as they are stored.
struct OpenedPacket: Sendable {
  struct Row: Sendable {
    /// `MONITOR_TYPE`; empty where the meta has none.
    var type: String
    /// `REPORT_ID`; empty where the meta has none.
    var reportID: String
    /// `CREATE_TIME`, milliseconds since 1970.
    var createdTime: Int?
    var meta: [UInt8]
    var payload: [UInt8]?
  }

  let delivery: Delivery
  let rows: [Row]

  /// - Throws: 422 naming the row whose meta is no JSON object; 400 where the count is another than announced.
  init(_ delivery: Delivery, metas: [[UInt8]], payloads: [[UInt8]]) throws(CollectorRefusal) {
    guard metas.count == delivery.itemCount else {
      throw CollectorRefusal(
        400, code: .countMismatch, "the packet holds \(metas.count) metas, Prism-Item-Count is \(delivery.itemCount)")
    }
    self.delivery = delivery
    var rows: [Row] = []
    for (index, meta) in metas.enumerated() {
      // Duplicate keys below the top level are the reporter's own affair.
      guard let value = try? JSONValue(parsing: meta, allowsDuplicateKeys: true), value.object != nil else {
        throw CollectorRefusal(422, code: .metaSyntax, "meta \(index) is not a JSON object")
      }
      rows.append(
        Row(
          type: value["MONITOR_TYPE"]?.string ?? "", reportID: value["REPORT_ID"]?.string ?? "",
          createdTime: value["CREATE_TIME"]?.int, meta: meta,
          payload: delivery.context.kind == .payload ? payloads[index] : nil))
    }
    self.rows = rows
  }
}
