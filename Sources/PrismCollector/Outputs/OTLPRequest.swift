import PrismBase
import PrismConfig
import PrismProtocol

/// A request of OTLP/HTTP. Records that follow each other and have resource and scope in common share them.
struct OTLPRequest {
  private let signal: OTLPSignal
  private var resources: [(resource: JSONValue, scopes: [(scope: JSONValue, records: [JSONValue])])] = []

  /// - Parameter records: all of `signal`.
  init(_ signal: OTLPSignal, _ records: some Sequence<OTLPRecord>) {
    self.signal = signal
    for record in records { add(record) }
  }

  private mutating func add(_ record: OTLPRecord) {
    if resources.last?.resource != record.resource { resources.append((record.resource, [])) }
    let last = resources.count - 1
    if resources[last].scopes.last?.scope != record.scope { resources[last].scopes.append((record.scope, [])) }
    resources[last].scopes[resources[last].scopes.count - 1].records.append(record.record)
  }

  func body(_ encoding: CollectorConfiguration.Output.Encoding) -> (bytes: [UInt8], mediaType: String) {
    switch encoding {
    case .json: (text, "application/json")
    case .protobuf: (protobuf, "application/x-protobuf")
    }
  }

  /// The outer messages are alike for all signals: a list of resources (1), each with its resource (1) and scopes (2),
  /// each with its scope (1) and records (2).
  private var protobuf: [UInt8] {
    var request = ProtobufWriter()
    for resource in resources {
      var outer = Self.written(resource.resource, as: .resource)
      for scope in resource.scopes {
        var inner = Self.written(scope.scope, as: .scope)
        for record in scope.records {
          var writer = ProtobufWriter()
          writer.append(record, as: signal.recordMessage)
          inner.append(writer.bytes, 2)
        }
        outer.append(inner.bytes, 2)
      }
      request.append(outer.bytes, 1)
    }
    return request.bytes
  }

  /// A message as the first field of another one.
  private static func written(_ json: JSONValue, as message: OTLPMessage) -> ProtobufWriter {
    var (outer, inner) = (ProtobufWriter(), ProtobufWriter())
    inner.append(json, as: message)
    outer.append(inner.bytes, 1)
    return outer
  }

  var text: [UInt8] {
    let names = signal.names
    let resources: [JSONValue] = resources.map { resource in
      let scopes: [JSONValue] = resource.scopes.map { scope in
        .object([.init("scope", scope.scope), .init(names.records, .array(scope.records))])
      }
      return .object([.init("resource", resource.resource), .init(names.scopes, .array(scopes))])
    }
    return JSONValue.object([.init(names.resources, .array(resources))]).bytes
  }
}

/// A report as a record of OTLP. One that came over OTLP is given back as it came; of another one a log record is made,
/// whose body is the meta.
struct OTLPRecord: Equatable {
  let signal: OTLPSignal
  let resource: JSONValue, scope: JSONValue
  let record: JSONValue

  init(_ report: StoredReport) {
    let meta = (try? JSONValue(parsing: report.meta)) ?? .null
    if let signal = Self.signal(of: report, meta) {
      let members = (meta.object ?? []).filter { signal.recordMessage.hasField($0.key) }
      (self.signal, record) = (signal, .object(members))
      (resource, scope) = (meta["OTEL_RESOURCE"] ?? .object([]), meta["OTEL_SCOPE"] ?? .object([]))
    } else {
      (signal, record) = (.logs, Self.record(report, meta))
      resource = ["attributes": .array(Self.origin(report, meta))]
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
    let severity = severity(of: report.type)
    if report.type == CrashReport.type { attributes += exception(meta) }
    attributes += (meta.object ?? []).filter { isOwn($0) }.map { ["key": .string($0.key), "value": value($0.value)] }
    if let payload = report.payload {
      attributes.append(["key": "prism.payload", "value": ["bytesValue": .string(Base64.encode(payload))]])
    }
    return [
      "timeUnixNano": .string(nanoseconds(created)), "observedTimeUnixNano": .string(nanoseconds(report.receivedTime)),
      "severityNumber": .int(severity.number), "severityText": .string(severity.text),
      "eventName": .string(report.type), "body": value(meta), "attributes": .array(attributes),
    ]
  }

  /// The service is the app; a report without one is of its namespace.
  private static func origin(_ report: StoredReport, _ meta: JSONValue) -> [JSONValue] {
    var attributes = [
      attribute("service.name", meta["APP_NAME"]?.string ?? report.namespace),
      attribute("service.namespace", report.namespace), attribute("device.id", report.device),
    ]
    let others = [("service.version", "APP_VERSION"), ("os.description", "SYS_SYSTEM_VERSION")]
    for (name, member) in others { meta[member]?.string.map { attributes.append(attribute(name, $0)) } }
    return attributes
  }

  /// Numbers of OTLP's data model for logs.
  private static func severity(of type: String) -> (number: Int, text: String) {
    switch type {
    case CrashReport.type: (21, "FATAL")
    case "netError": (17, "ERROR")
    case "appLag": (13, "WARN")
    default: (9, "INFO")
    }
  }

  /// As OpenTelemetry's conventions name the parts of an exception.
  private static func exception(_ meta: JSONValue) -> [JSONValue] {
    [("exception.type", "reason"), ("exception.message", "message"), ("exception.stacktrace", "stack")]
      .compactMap { name, member in meta[member]?.string.map { attribute(name, $0) } }
  }

  /// A plain value that the program gave: prism's own members are in the body, and in the resource.
  private static func isOwn(_ member: JSONValue.Member) -> Bool {
    let isPrisms = ["SYS_", "APP_", "MONITOR_", "OTEL_"].contains { member.key.hasPrefix($0) }
    return !isPrisms && !["REPORT_ID", "CREATE_TIME", "IS_BIZ"].contains(member.key)
      && member.value.object == nil && member.value.array == nil && member.value != .null
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
    guard let number = json.numberText else { return .object([]) }
    return Int64(number).map { ["intValue": .string(String($0))] } ?? ["doubleValue": json]
  }
}
