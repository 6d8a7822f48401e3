import PrismAdmission
import PrismBase
import PrismConfig
import PrismPacket
import PrismProtocol

extension DaemonConfiguration.OTLP {
  /// The namespace of records whose resource names no other one.
  var namespaceText: String { namespace ?? Self.namespaceDefault }
}

/// Makes reports of the records of one request (docs/otlp.md, "What becomes of a record"). Pure.
struct OTLPReports {
  /// The largest resource and scope; a larger one is cut like a record.
  private static let resourceBytesMax = 4096, scopeBytesMax = 1024

  private let signal: OTLPSignal
  private let snapshot: Snapshot
  /// The beginning of all report ids of the request.
  private let idPrefix: ReportID?
  private let peer: ReportingPeer

  init(_ signal: OTLPSignal, _ snapshot: Snapshot, idPrefix: ReportID?, peer: ReportingPeer) {
    (self.signal, self.snapshot, self.idPrefix, self.peer) = (signal, snapshot, idPrefix, peer)
  }

  /// In the order of the records; each part is small enough for one commit.
  func parts(of request: OTLPRequest) -> [InputPart] {
    var (parts, part): ([InputPart], InputPart) = ([], InputPart())
    var (index, first) = (0, 0)
    func end() {
      // A crash beside its record has an id that is not of the run.
      let isRun = index - first >= InputPart.runMin && part.reports.count == index - first
      part.run = isRun ? idPrefix.flatMap { ReportIDRun($0, first: first, count: index - first) } : nil
      parts.append(part)
      (part, first) = (InputPart(), index)
    }
    for group in request.groups where !group.records.isEmpty {
      let place = Place(group, snapshot, peer)
      for record in group.records {
        part.append(report(record, index, place), bytes: record.members.count)
        for crash in crash(record, index, place) { part.append(crash, bytes: record.members.count) }
        index += 1
        if part.isFull { end() }
      }
    }
    if !part.reports.isEmpty { end() }
    return parts
  }

  /// The common part of a scope's records.
  private struct Place {
    let namespace: String
    let source: SubmissionSource
    let commonBytes: Int
    /// Of the namespace.
    private let list: [MonitoredType]

    init(_ group: OTLPRequest.Group, _ snapshot: Snapshot, _ peer: ReportingPeer) {
      let origin = group.origin
      namespace = origin.namespace ?? snapshot.daemon.otlp.namespaceText
      let list = NamespaceName(namespace).flatMap { snapshot.namespaces[$0]?.monitorList } ?? []
      self.list = list
      var members: [CommonMember] = []
      let resource = OTLPReports.cut(origin.resource, OTLPReports.resourceBytesMax)
      let scope = OTLPReports.cut(group.scope, OTLPReports.scopeBytesMax)
      if !resource.isEmpty { members.append(CommonMember("OTEL_RESOURCE", json: resource)) }
      if !scope.isEmpty { members.append(CommonMember("OTEL_SCOPE", json: scope)) }
      commonBytes = resource.count + scope.count
      var app: [String: String] = [:]
      (app["APP_NAME"], app["APP_VERSION"]) = (origin.serviceName, origin.serviceVersion)
      let hash = (try? Hashing.sha256(origin.resource)) ?? []
      source = SubmissionSource(peer: peer, app: app, members: members, sessionID: Hex.encode(hash.prefix(8)))
    }

    /// Whether an entry other than `*` means the type.
    func lists(_ type: String) -> Bool {
      guard let type = ReportType(type), let entry = list.entry(for: type) else { return false }
      return entry.type != .any
    }

    var takesCrashes: Bool { list.entry(for: .appCrash) != nil }
  }

  private static func cut(_ object: [UInt8], _ bytesMax: Int) -> [UInt8] {
    guard object.count > bytesMax else { return object }
    guard let members = MetaCut.cut(Array(object.dropFirst().dropLast()), bytesMax: bytesMax - 2) else { return object }
    return [.openBrace] + members + [.closeBrace]
  }

  private func report(_ record: OTLPRecord, _ index: Int, _ place: Place) -> InputReport {
    let eventType = record.eventName.flatMap { place.lists($0) ? $0 : nil }
    let type = signal == .logs ? eventType ?? signal.type : signal.type
    let submission = Submission(
      type, in: place.namespace, members: record.members.span, createdTime: record.time,
      reportID: idPrefix?.numbered(index), from: place.source)
    return InputReport(submission: submission, commonBytes: place.commonBytes)
  }

  private func crash(_ record: OTLPRecord, _ index: Int, _ place: Place) -> [InputReport] {
    let exception = record.exception
    guard snapshot.daemon.otlp.exceptions, signal == .logs, record.isError, !exception.isEmpty,
      place.takesCrashes
    else { return [] }
    var meta: [JSONValue.Member] = []
    if let type = exception.type { meta.append(.init("exception.type", .string(type))) }
    if let message = exception.message { meta.append(.init("exception.message", .string(message))) }
    if meta.isEmpty { meta.append(.init("exception.type", .string("unknown"))) }
    let submission = Submission(
      ReportType.appCrash.text, in: place.namespace, meta: JSONValue.object(meta).bytes,
      payload: exception.stacktrace.map { Array($0.utf8) }, createdTime: record.time,
      reportID: idPrefix?.numbered(index).flatMap { ReportID("\($0)-crash") }, from: place.source)
    return [InputReport(submission: submission, commonBytes: place.commonBytes, isBesideRecord: true)]
  }
}
