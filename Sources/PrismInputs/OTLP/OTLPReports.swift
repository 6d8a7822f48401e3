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
  /// For the common information of the host and the sender.
  private static let reservedBytes = 2048

  private let signal: OTLPSignal
  private let snapshot: Snapshot
  /// The beginning of all report ids of the request.
  private let idPrefix: ReportID?
  private let peer: ReportingPeer

  init(_ signal: OTLPSignal, _ snapshot: Snapshot, idPrefix: ReportID?, peer: ReportingPeer) {
    (self.signal, self.snapshot, self.idPrefix, self.peer) = (signal, snapshot, idPrefix, peer)
  }

  /// The common part of a scope's records.
  struct Place {
    let namespace: String
    let source: SubmissionSource
    /// Of the points of metrics, which are added up; nil: the namespace does not reduce the type of metrics.
    let reducing: (source: SubmissionSource, service: String?, origin: [UInt8])?
    /// The members of one report, beside the common part.
    let bytesMax: Int
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
      bytesMax = Limits.metaBytesMax - resource.count - scope.count - OTLPReports.reservedBytes
      var app: [String: String] = [:]
      (app["APP_NAME"], app["APP_VERSION"]) = (origin.serviceName, origin.serviceVersion)
      let hash = (try? Hashing.sha256(origin.resource)) ?? []
      var mending = Mending()
      mending.cuts = true
      // A text that is no name never gets a file.
      mending.waits = NamespaceName(namespace) != nil ? Mending.untilConfigured : [.unknownType]
      source = SubmissionSource(
        peer: peer, app: app, members: members, mending: mending, sessionID: Hex.encode(hash.prefix(8)))
      let type = ReportType(OTLPSignal.metrics.type)
      let reduces = type.flatMap { list.entry(for: $0) }?.filters.reduce != nil
      let points = SubmissionSource(peer: peer, mending: mending, sessionID: OTLPSignal.metrics.type, reduces: true)
      reducing = reduces ? (points, origin.serviceName, hash + group.scope) : nil
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
    guard let members = MetaCut.cut(object, bytesMax: bytesMax - 2) else { return object }
    return [.openBrace] + members + [.closeBrace]
  }

  func place(of group: OTLPRequest.Group) -> Place { Place(group, snapshot, peer) }

  /// Appends the reports of a record: a metric of many points is several.
  /// - Parameter index: of the next report in the request.
  func append(_ record: OTLPRecord, _ index: inout Int, _ place: Place, to part: inout InputPart) {
    if signal == .metrics, let (source, service, origin) = place.reducing,
      let points = MetricPoints.parts(
        of: record.members, service: service, origin: origin, bytesMax: place.bytesMax)
    {
      for point in points {
        let report = Submission(
          signal.type, in: place.namespace, members: point.members.span, createdTime: point.time,
          reportID: idPrefix?.numbered(index), from: source)
        part.append(report, bytes: point.members.count)
        index += 1
      }
      return
    }
    for members in signal == .metrics
      ? MetricParts.parts(of: record.members, bytesMax: place.bytesMax) : [record.members]
    {
      let eventType = record.eventName.flatMap { place.lists($0) ? $0 : nil }
      let report = Submission(
        signal == .logs ? eventType ?? signal.type : signal.type, in: place.namespace, members: members.span,
        createdTime: record.time, reportID: idPrefix?.numbered(index), from: place.source)
      part.append(report, bytes: members.count)
      appendCrash(record, index, place, to: &part)
      index += 1
    }
  }

  /// The ids of `count` reports from `first` on.
  func run(_ first: Int, count: Int) -> ReportIDRun? {
    idPrefix.flatMap { ReportIDRun($0, first: first, count: count) }
  }

  private func appendCrash(_ record: OTLPRecord, _ index: Int, _ place: Place, to part: inout InputPart) {
    let exception = record.exception
    guard snapshot.daemon.otlp.exceptions, signal == .logs, record.isError, !exception.isEmpty,
      place.takesCrashes
    else { return }
    var meta: [JSONValue.Member] = []
    if let type = exception.type { meta.append(.init("exception.type", .string(type))) }
    if let message = exception.message { meta.append(.init("exception.message", .string(message))) }
    if meta.isEmpty { meta.append(.init("exception.type", .string("unknown"))) }
    let text = JSONValue.object(meta).bytes
    let members = text.span.extracting(1..<text.count - 1)
    let crash = Submission(
      ReportType.appCrash.text, in: place.namespace, members: members,
      payload: exception.stacktrace.map { Array($0.utf8) }, createdTime: record.time,
      reportID: idPrefix?.numbered(index).flatMap { ReportID("\($0)-crash") }, from: place.source)
    part.append(crash, bytes: members.count, isBeside: true)
  }
}

/// The reports of a request in parts that are small enough for one commit. A part is made when it is asked for: only one of
/// them needs memory.
struct OTLPParts {
  private let reports: OTLPReports
  private let request: OTLPRequest
  private let body: [UInt8]
  private var reader: OTLPRecordReader
  private var place: OTLPReports.Place?
  /// Of the next record, and of the next report.
  private var group = 0, record = 0, index = 0

  init(_ reports: OTLPReports, _ request: OTLPRequest, _ body: [UInt8], _ reader: OTLPRecordReader) {
    (self.reports, self.request, self.body, self.reader) = (reports, request, body, reader)
  }

  /// Records that cannot become reports, by reason, as far as they were read.
  var unusable: [String: Int] { request.unusable.merging(reader.unusable, uniquingKeysWith: +) }

  mutating func next() -> InputPart? {
    var part = InputPart()
    let first = index
    while !part.isFull, group < request.groups.count {
      let records = request.groups[group].records
      guard record < records.count else {
        (group, record, place) = (group + 1, 0, nil)
        continue
      }
      record += 1
      guard let read = reader.record(records[record - 1], of: body) else { continue }
      let place = self.place ?? reports.place(of: request.groups[group])
      self.place = place
      reports.append(read, &index, place, to: &part)
    }
    if part.reports.isEmpty { return nil }
    // A crash beside its record has an id that is not of the run.
    let isRun = index - first >= InputPart.runMin && part.reports.count == index - first
    part.run = isRun ? reports.run(first, count: index - first) : nil
    return part
  }
}

/// Takes a metric with more data points than fit in one meta apart. Pure.
enum MetricParts {
  private static let kinds = ["gauge", "sum", "histogram", "exponentialHistogram", "summary"]

  /// - Parameter members: of a metric, as JSON without braces.
  /// - Returns: the members of metrics that are equal but for their data points, each of at most `bytesMax` bytes if that is
  ///   possible.
  static func parts(of members: [UInt8], bytesMax: Int) -> [[UInt8]] {
    guard members.count > bytesMax,
      let metric = try? JSONValue(parsingMembers: members, allowsDuplicateKeys: true).object,
      let place = metric.firstIndex(where: { kinds.contains($0.key) }),
      let data = metric[place].value.object, let list = data.firstIndex(where: { $0.key == "dataPoints" }),
      let points = data[list].value.array, points.count > 1
    else { return [members] }
    let sizes = points.map { $0.bytes.count + 1 }
    let room = bytesMax - (members.count - sizes.reduce(0, +))
    var (parts, start, bytes): ([[UInt8]], Int, Int) = ([], 0, 0)
    func end(_ end: Int) {
      var (metric, data) = (metric, data)
      data[list] = .init("dataPoints", .array(Array(points[start..<end])))
      metric[place] = .init(metric[place].key, .object(data))
      parts.append(Array(JSONValue.object(metric).bytes.dropFirst().dropLast()))
      (start, bytes) = (end, 0)
    }
    for (index, size) in sizes.enumerated() {
      if index > start, bytes + size > room { end(index) }
      bytes += size
    }
    end(points.count)
    return parts
  }
}
