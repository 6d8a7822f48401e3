import PrismBase
import PrismProtocol

/// Reports as a request of OTLP/HTTP in JSON (opentelemetry.io, "OTLP Specification"): a log record each, whose body is the
/// meta.
enum OTLPLogs {
  static func request(_ reports: [StoredReport]) -> [UInt8] {
    var groups: [(key: [String], records: [JSONValue])] = []
    for report in reports {
      let key = [report.device, report.namespace]
      if groups.last?.key != key { groups.append((key, [])) }
      groups[groups.count - 1].records.append(record(report))
    }
    let resources: [JSONValue] = groups.map { group in
      [
        "resource": [
          "attributes": [attribute("device.id", group.key[0]), attribute("service.namespace", group.key[1])]
        ],
        "scopeLogs": [["scope": ["name": "prism"], "logRecords": .array(group.records)]],
      ]
    }
    let request: JSONValue = ["resourceLogs": .array(resources)]
    return Array(request.text.utf8)
  }

  private static func record(_ report: StoredReport) -> JSONValue {
    let created = report.createdTime ?? report.receivedTime
    var attributes = [
      attribute("prism.type", report.type), attribute("prism.report_id", report.reportID),
      attribute("prism.packet_id", report.packetID),
    ]
    if let payload = report.payload {
      attributes.append(["key": "prism.payload", "value": ["bytesValue": .string(Base64.encode(payload))]])
    }
    let meta = try? JSONValue(parsing: report.meta)
    return [
      "timeUnixNano": .string(nanoseconds(created)), "observedTimeUnixNano": .string(nanoseconds(report.receivedTime)),
      "eventName": .string(report.type), "body": value(meta ?? .null), "attributes": .array(attributes),
    ]
  }

  private static func attribute(_ key: String, _ text: String) -> JSONValue {
    ["key": .string(key), "value": ["stringValue": .string(text)]]
  }

  /// Numbers of 64 bits are strings in protobuf's JSON.
  private static func nanoseconds(_ milliseconds: Int64) -> String {
    milliseconds > 0 && milliseconds < Int64.max / 1_000_000 ? String(milliseconds * 1_000_000) : "0"
  }

  /// An `AnyValue`.
  static func value(_ json: JSONValue) -> JSONValue {
    if let text = json.string { return ["stringValue": .string(text)] }
    if let flag = json.bool { return ["boolValue": .bool(flag)] }
    if let members = json.object {
      let values: [JSONValue] = members.map { ["key": .string($0.key), "value": value($0.value)] }
      return ["kvlistValue": ["values": .array(values)]]
    }
    if let elements = json.array { return ["arrayValue": ["values": .array(elements.map { value($0) })]] }
    guard let number = json.number else { return .object([]) }
    return Int64(number).map { ["intValue": .string(String($0))] } ?? ["doubleValue": json]
  }
}

extension JSONValue {
  /// A number's text.
  fileprivate var number: String? { if case .number(let text) = self { text } else { nil } }
}
