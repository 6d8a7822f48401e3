import PrismBase
import PrismProtocol

/// A report as a record of OTLP. One that came over OTLP is given back as it came; of another one a log record is made,
/// whose body is the meta.
struct OTLPRecord: Equatable {
  let signal: OTLPSignal
  let resource: JSONValue, scope: JSONValue
  let record: JSONValue

  init(_ report: StoredReport) {
    let meta = (try? JSONValue(parsing: report.meta)) ?? .null
    if let signal = Self.signal(of: report, meta) {
      let members = (meta.object ?? []).filter { signal.members.contains($0.key) }
      (self.signal, record) = (signal, .object(members))
      (resource, scope) = (meta["OTEL_RESOURCE"] ?? .object([]), meta["OTEL_SCOPE"] ?? .object([]))
    } else {
      (signal, record) = (.logs, Self.record(report, meta))
      resource = [
        "attributes": [
          Self.attribute("device.id", report.device), Self.attribute("service.namespace", report.namespace),
        ]
      ]
      scope = ["name": "prism"]
    }
  }

  /// The signal as which the report came; nil: it came in another way.
  private static func signal(of report: StoredReport, _ meta: JSONValue) -> OTLPSignal? {
    if let signal = OTLPSignal.allCases.first(where: { $0.type == report.type }) { return signal }
    // An event of its own type.
    guard meta["OTEL_RESOURCE"] != nil || meta["OTEL_SCOPE"] != nil else { return nil }
    return meta["eventName"]?.string == report.type ? .logs : nil
  }

  private static func record(_ report: StoredReport, _ meta: JSONValue) -> JSONValue {
    let created = report.createdTime ?? report.receivedTime
    var attributes = [
      attribute("prism.type", report.type), attribute("prism.report_id", report.reportID),
      attribute("prism.packet_id", report.packetID),
    ]
    if let payload = report.payload {
      attributes.append(["key": "prism.payload", "value": ["bytesValue": .string(Base64.encode(payload))]])
    }
    return [
      "timeUnixNano": .string(nanoseconds(created)), "observedTimeUnixNano": .string(nanoseconds(report.receivedTime)),
      "eventName": .string(report.type), "body": value(meta), "attributes": .array(attributes),
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
