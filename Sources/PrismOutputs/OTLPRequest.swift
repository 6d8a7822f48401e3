import PrismBase
import PrismConfig
import PrismProtocol

/// The body of a request of OTLP/HTTP. Records that follow each other and have resource and scope in common share them.
///
/// A report that came over OTLP is given back as it came; of another one a log record is made, whose body is the meta.
struct OTLPRequest {
  typealias Body = (bytes: [UInt8], mediaType: String)

  private let signal: OTLPSignal
  private let lists: (resources: OTLPField, scopes: OTLPField, records: OTLPField)
  private var body: OTLPWriter
  /// Those of the newest record.
  private var resource: OTLPWriter, scope: OTLPWriter
  /// Those that are open, as they were written; nil: there is no such.
  private var openResource: (bytes: [UInt8], start: Int)?
  private var openScope: (bytes: [UInt8], start: Int)?
  private var members = ScannedMembers()

  /// - Parameter reports: all of `signal`.
  static func body(
    _ signal: OTLPSignal, _ reports: [StoredReport], _ encoding: CollectorConfiguration.Output.Encoding
  ) -> Body {
    let bytesCount = reports.reduce(0) { $0 + 2 * $1.bytes + Self.reportBytes }
    var request = OTLPRequest(signal, isJSON: encoding == .json, bytesCount: bytesCount)
    if encoding == .json { request.body.append([UInt8(ascii: "{")]) }
    request.body.beginList(request.lists.resources)
    for report in reports { request.add(report) }
    request.endResource()
    request.body.endList()
    if encoding == .json { request.body.append([UInt8(ascii: "}")]) }
    return (request.body.bytes, encoding == .json ? "application/json" : "application/x-protobuf")
  }

  /// Of a record beside its meta, roughly.
  private static let reportBytes = 700

  private init(_ signal: OTLPSignal, isJSON: Bool, bytesCount: Int) {
    (self.signal, lists) = (signal, signal.lists)
    body = OTLPWriter(isJSON: isJSON, bytesCount: bytesCount)
    (resource, scope) = (OTLPWriter(isJSON: isJSON), OTLPWriter(isJSON: isJSON))
  }

  private mutating func add(_ report: StoredReport) {
    let meta = members.scan(report.meta.span) ? report.meta : Self.null
    let text = meta.span
    let isOTLP = cameOverOTLP(report, text)
    resource.removeAll()
    scope.removeAll()
    if isOTLP {
      Self.write(.resource, members.value(Self.resourceKey, in: text), text, to: &resource)
      Self.write(.scope, members.value(Self.scopeKey, in: text), text, to: &scope)
    } else {
      addOrigin(report, text)
    }
    beginScope()
    let start = body.begin(lists.records)
    if isOTLP { addMembers(text) } else { addRecord(report, text) }
    body.end(start)
  }

  private static let null = Array("null".utf8)
  private static let (resourceKey, scopeKey) = (Array("OTEL_RESOURCE".utf8), Array("OTEL_SCOPE".utf8))
  private static let eventKey = Array("eventName".utf8)

  private func cameOverOTLP(_ report: StoredReport, _ text: Span<UInt8>) -> Bool {
    if signal.type == report.type { return true }
    // An event of its own type.
    let hasOrigin = [Self.resourceKey, Self.scopeKey].contains { members.value($0, in: text) != nil }
    return hasOrigin && members.string(Self.eventKey, in: text) == report.type
  }

  /// - Parameter start: of a value that need not be an object; nil: there is no value.
  private static func write(_ field: OTLPField, _ start: Int?, _ text: Span<UInt8>, to writer: inout OTLPWriter) {
    if let start, writer.isJSON || text[start] == UInt8(ascii: "{") { return writer.value(field, text, at: start) }
    writer.end(writer.begin(field))
  }

  private mutating func addMembers(_ text: Span<UInt8>) {
    for member in members.all {
      guard let field = signal.recordMessage.field(member.key, in: text) else { continue }
      body.value(field, text, at: member.value)
    }
  }

  // MARK: Levels

  private mutating func beginScope() {
    if openResource?.bytes != resource.bytes {
      endResource()
      openResource = (resource.bytes, body.begin(lists.resources))
      body.append(resource.bytes)
      body.beginList(lists.scopes)
    }
    guard openScope?.bytes != scope.bytes else { return }
    endScope()
    openScope = (scope.bytes, body.begin(lists.scopes))
    body.append(scope.bytes)
    body.beginList(lists.records)
  }

  private mutating func endResource() {
    endScope()
    guard let start = openResource?.start else { return }
    body.endList()
    body.end(start)
    openResource = nil
  }

  private mutating func endScope() {
    guard let start = openScope?.start else { return }
    body.endList()
    body.end(start)
    openScope = nil
  }

  // MARK: Other reports

  /// The service is the app; a report without one is of its namespace.
  private mutating func addOrigin(_ report: StoredReport, _ text: Span<UInt8>) {
    let start = resource.begin(.resource)
    resource.beginList(Self.resourceAttributes)
    let name = members.string(Self.appName, in: text) ?? report.namespace
    resource.attribute(Self.resourceAttributes, "service.name", name)
    resource.attribute(Self.resourceAttributes, "service.namespace", report.namespace)
    resource.attribute(Self.resourceAttributes, "device.id", report.device)
    for (name, key) in Self.originKeys {
      if let value = members.string(key, in: text) { resource.attribute(Self.resourceAttributes, name, value) }
    }
    resource.endList()
    resource.end(start)
    let scopeStart = scope.begin(.scope)
    scope.string(Self.scopeName, "prism")
    scope.end(scopeStart)
  }

  private static let appName = Array("APP_NAME".utf8)
  private static let originKeys = [
    ("service.version", Array("APP_VERSION".utf8)), ("os.description", Array("SYS_SYSTEM_VERSION".utf8)),
  ]

  private static let resourceAttributes = OTLPMessage.resource["attributes"]
  private static let scopeName = OTLPMessage.scope["name"]

  private enum Record {
    static let time = OTLPMessage.logRecord["timeUnixNano"]
    static let observedTime = OTLPMessage.logRecord["observedTimeUnixNano"]
    static let severityNumber = OTLPMessage.logRecord["severityNumber"]
    static let severityText = OTLPMessage.logRecord["severityText"]
    static let eventName = OTLPMessage.logRecord["eventName"], body = OTLPMessage.logRecord["body"]
    static let attributes = OTLPMessage.logRecord["attributes"]
  }

  private mutating func addRecord(_ report: StoredReport, _ text: Span<UInt8>) {
    let severity = Self.severity(of: report.type)
    body.integer(Record.time, Self.nanoseconds(report.createdTime ?? report.receivedTime))
    body.integer(Record.observedTime, Self.nanoseconds(report.receivedTime))
    body.integer(Record.severityNumber, severity.number)
    body.string(Record.severityText, severity.text)
    body.string(Record.eventName, report.type)
    body.anyValue(Record.body, text)
    body.beginList(Record.attributes)
    body.attribute(Record.attributes, "prism.type", report.type)
    body.attribute(Record.attributes, "prism.report_id", report.reportID)
    body.attribute(Record.attributes, "prism.packet_id", report.packetID)
    for (name, key) in report.type == ReportType.appCrash.text ? Self.exceptionKeys : [] {
      if let value = members.string(key, in: text) { body.attribute(Record.attributes, name, value) }
    }
    for member in members.all where Self.isOwn(member, text) { body.attribute(Record.attributes, member, text) }
    if let payload = report.payload { body.attribute(Record.attributes, "prism.payload") { $0.payload(payload) } }
    body.endList()
  }

  /// As OpenTelemetry's conventions name the parts of an exception.
  private static let exceptionKeys = [
    ("exception.type", Array("reason".utf8)), ("exception.message", Array("message".utf8)),
    ("exception.stacktrace", Array("stack".utf8)),
  ]

  /// Numbers of OTLP's data model for logs.
  private static func severity(of type: String) -> (number: Int64, text: String) {
    switch type {
    case ReportType.appCrash.text: (21, "FATAL")
    case "netError": (17, "ERROR")
    case "appLag": (13, "WARN")
    default: (9, "INFO")
    }
  }

  private static func nanoseconds(_ milliseconds: Int64) -> Int64 {
    milliseconds > 0 && milliseconds < Int64.max / 1_000_000 ? milliseconds * 1_000_000 : 0
  }

  /// A plain value that the program gave: prism's own members are in the body, and in the resource.
  private static func isOwn(_ member: ScannedMembers.Member, _ text: Span<UInt8>) -> Bool {
    let first = text[member.value]
    guard first != UInt8(ascii: "{"), first != UInt8(ascii: "["), first != UInt8(ascii: "n") else { return false }
    let key = member.key.hasEscapes ? Array(member.key.string(in: text).utf8) : []
    let name = member.key.hasEscapes ? key.span : text.extracting(member.key.range)
    return name.withUnsafeBufferPointer { name in
      !prefixes.contains { name.starts(with: $0) } && !names.contains { name.elementsEqual($0) }
    }
  }

  private static let prefixes = ["SYS_", "APP_", "MONITOR_", "OTEL_"].map { Array($0.utf8) }
  private static let names = ["REPORT_ID", "CREATE_TIME", "IS_BIZ"].map { Array($0.utf8) }
}

extension StoredReport {
  /// Of the request that it goes with.
  var signal: OTLPSignal { OTLPSignal.allCases.first { $0.type == type } ?? .logs }
}
