import PrismBase
import PrismHTTP
import PrismOutputs
import PrismProtocol

/// Answers what devices said to a question, merged (docs/recorder.md, "Questions").
struct QuestionAPI: PageAnswers {
  /// Groups of a merged answer at most, those of the most reports; the rest is in `others`.
  private static let groupsMax = 1000

  let api: PageAPI

  /// `GET /questions/{namespace}/{id}`: the id is that of the commands `ask`, the same at each device.
  func answer(_ request: PageRequest) async throws(CollectorRefusal) -> HTTPResponse {
    guard let namespace = NamespaceName(request.parts[0]), let id = RecordID(request.parts[1]) else {
      throw CollectorRefusal(400, "the path names no namespace and id; it is /questions/NAMESPACE/ID")
    }
    var filter = RecordFilter(scope: request.scope, namespace: namespace, table: .command)
    (filter.id, filter.limit) = (id, RecordFilter.limitMax)
    var (sum, states, devices, asked) = (QuestionAnswer(), [String: Int](), [JSONValue](), JSONValue.null)
    while true {
      let page = try await api.ask { [filter] () throws(StoreFailure) in
        try await api.collector.store.records(filter)
      }
      guard let last = page.last else { break }
      for record in page {
        let fields = (try? JSONValue(parsing: record.fields)) ?? .null
        guard fields["name"]?.string == CommandName.ask.rawValue else { continue }
        asked = fields["args"] ?? asked
        devices.append(Self.device(record, CommandAnswer(fields: fields), &sum, &states))
      }
      filter.after = last.number
    }
    guard !devices.isEmpty else { throw CollectorRefusal(404, "no device was asked a question of this id") }
    return PageAPI.json([
      "asked": devices.count, "states": JSONValue(byName: states), "rows": sum.rows, "bytes": sum.bytes,
      "looked": sum.looked, "ms": sum.milliseconds, "groups": Self.groups(of: &sum),
      "others": Self.json(of: sum.others), "question": asked, "devices": devices,
    ])
  }

  private static func device(
    _ record: CollectedRecord, _ answer: CommandAnswer?, _ sum: inout QuestionAnswer, _ states: inout [String: Int]
  ) -> JSONValue {
    let found = answer?.state == .done ? answer?.result.flatMap { QuestionAnswer(json: $0) } : nil
    if let found { sum.merge(found) }
    // A device that says `done` and nothing that can be read has not answered.
    let isReadable = answer?.state != .done || found != nil
    let state = isReadable ? answer?.state.rawValue ?? "waiting" : "failed"
    states[state, default: 0] += 1
    return JSONValue([
      "device": record.device, "state": state, "rows": found?.rows, "bytes": found?.bytes,
      "message": isReadable ? answer?.result?.string : "the answer can't be read",
    ])
  }

  private static func groups(of sum: inout QuestionAnswer) -> JSONValue {
    let sorted = sum.groups.sorted { ($1.value.count, $0.key) < ($0.value.count, $1.key) }
    for group in sorted.dropFirst(groupsMax) { sum.others.merge(group.value) }
    return .array(
      sorted.prefix(groupsMax).map { group in
        .object([.init("value", .string(group.key.text))] + (json(of: group.value).object ?? []))
      })
  }

  private static func json(of sketch: Sketch) -> JSONValue {
    let shares = [("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99)]
    return .object(
      (sketch.sums.object ?? [])
        + shares.map { JSONValue.Member($0.0, sketch.percentile($0.1).map { .double($0) } ?? .null) }
        + [JSONValue.Member("error", .double(sketch.error))])
  }

  // MARK: Kept reports of devices, by their hourly reports `ringHealth` (docs/recorder.md)

  /// A device that reported no hour in this time is left out, unless it is asked for by its id.
  private static let milliseconds: (ofFleet: Int64, ofDevice: Int64) = (3 * 3_600_000, 7 * 86_400_000)
  private static let counts = ["kept", "bytes", "overwritten", "triggered", "asked", "refused", "declined"]

  /// `GET /rings`: the newest hour of each device, as sums by type.
  func rings(_ request: PageRequest) async throws(CollectorRefusal) -> HTTPResponse {
    let wanted = request.http.parameter("type").map { ReportType(entry: $0) }
    if case .some(nil) = wanted { throw CollectorRefusal(400, "type: is no type of reports, and no pattern of types") }
    var filter = ReportFilter(scope: request.scope)
    (filter.type, filter.namespace, filter.device) = (
      ReportType.ringHealth.text, request.http.parameter("namespace"), request.http.parameter("device")
    )
    (filter.axis, filter.isNewestFirst) = (.received, true)
    let span = filter.device == nil ? Self.milliseconds.ofFleet : Self.milliseconds.ofDevice
    filter.since = api.collector.time.unixMilliseconds - span
    let (scan, store) = (api.scan, api.collector.store)
    var (devices, types, seen): ([JSONValue], [String: [Int]], Set<[String]>) = ([], [:], [])
    let reach = try await api.ask { () throws(StoreFailure) in
      try await scan.run(filter, within: ReportScan.countBudget) { (part) throws(StoreFailure) in
        var part = part
        part.limit = ReportFilter.limits.upperBound
        while true {
          let page = try await store.page(part)
          for report in page where seen.insert([report.namespace, report.device]).inserted {
            let counts = Self.add(report, of: wanted ?? nil, to: &types)
            devices.append([
              "device": .string(report.device), "namespace": .string(report.namespace),
              "time": .int(report.receivedTime), "kept": .int(counts[0]), "bytes": .int(counts[1]),
            ])
          }
          guard let last = page.last, ReportPage.mayBeCut(page, limit: part.limit) else { return true }
          part.before = last.id
        }
      }
    }
    let sums = types.sorted { ($1.value[0], $0.key) < ($0.value[0], $1.key) }.map { type, counts in
      JSONValue.object(
        [.init("type", .string(type))] + zip(Self.counts, counts).map { .init($0, .int($1)) })
    }
    return PageAPI.json(["devices": devices, "types": sums, "readSince": reach.since])
  }

  /// - Returns: the sums of its types that are wanted.
  private static func add(_ report: StoredReport, of wanted: ReportType?, to types: inout [String: [Int]]) -> [Int] {
    var sums = counts.map { _ in 0 }
    let entries = (try? JSONValue(parsing: report.meta))?["types"]?.array ?? []
    for entry in entries.prefix(Limits.metaBytesMax / 32) {
      guard let type = entry["type"]?.string.flatMap({ ReportType($0) }) else { continue }
      if let wanted, wanted != type, !(wanted.isPattern && wanted.matches(type)) { continue }
      let numbers = counts.map { min(max(0, entry[$0]?.int ?? 0), 1 << 40) }
      sums = zip(sums, numbers).map { $0 + $1 }
      types[type.text] = zip(types[type.text] ?? counts.map { _ in 0 }, numbers).map { $0 + $1 }
    }
    return sums
  }
}
