import PrismBase
import PrismHTTP
import PrismProtocol

// Counts and numbers over time.
extension PageAPI {
  private static let bucketWidths: [Int64] = [
    1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400, 172_800, 604_800,
    2_592_000, 31_536_000,
  ]
  /// Groups of a chart; the others are one.
  private static let groupsMax = 12

  /// `GET /histogram`: how many reports there were, by time and group.
  func histogram(_ request: PageRequest) async throws(CollectorRefusal) -> HTTPResponse {
    let (wanted, grouping) = (try timed(request), try grouping(request))
    let scan = try scan
    let (counts, reach) = try await ask { () throws(StoreFailure) in try await scan.counts(wanted, grouping) }
    let (groups, total) = Self.largest(counts)
    var cells: [Int64: [String: Int]] = [:]
    for count in counts {
      let group = groups.contains(count.group) ? count.group : "…"
      cells[count.time, default: [:]][group, default: 0] += count.count
    }
    let buckets = cells.sorted { $0.key < $1.key }.map { time, counts -> JSONValue in
      ["time": .int(time), "counts": Self.object(counts.mapValues { .int($0) })]
    }
    return Self.json([
      "since": wanted.since.map { .int($0) } ?? .null, "until": wanted.until.map { .int($0) } ?? .null,
      "bucketMilliseconds": .int(grouping.bucketMilliseconds), "groups": .array(groups.map { .string($0) }),
      "buckets": .array(buckets), "total": .int(total), "readSince": Self.since(reach),
    ])
  }

  /// The largest groups, and how many reports all have.
  private static func largest(_ counts: [ReportCount]) -> (groups: [String], total: Int) {
    var sums: [String: Int] = [:]
    for count in counts { sums[count.group, default: 0] += count.count }
    let sorted = sums.sorted { ($1.value, $0.key) < ($0.value, $1.key) }
    let groups = sorted.prefix(groupsMax).map(\.key)
    return (groups + (sorted.count > groupsMax ? ["…"] : []), sums.values.reduce(0, +))
  }

  private static func object(_ members: [String: JSONValue]) -> JSONValue {
    .object(members.sorted { $0.key < $1.key }.map { JSONValue.Member($0.key, $0.value) })
  }

  /// `GET /aggregate`: the numbers of a field of the meta, by time and group.
  func aggregate(_ request: PageRequest) async throws(CollectorRefusal) -> HTTPResponse {
    let (wanted, grouping) = (try timed(request), try grouping(request))
    let path = try Self.path(request.http.parameter("key") ?? "", "key")
    let scan = try scan
    let (numbers, reach) = try await ask { () throws(StoreFailure) in
      try await scan.numbers(wanted, path: path, grouping)
    }
    let groups = Self.largest(numbers.map { ReportCount(time: 0, group: $0.group, count: 1) }).groups
    var (all, cells) = ([String: [Double]](), [Int64: [String: [Double]]]())
    for number in numbers {
      let group = groups.contains(number.group) ? number.group : "…"
      all[group, default: []].append(number.value)
      cells[number.time, default: [:]][group, default: []].append(number.value)
    }
    let buckets = cells.sorted { $0.key < $1.key }.map { time, groups -> JSONValue in
      ["time": .int(time), "groups": Self.object(groups.mapValues { Self.json(NumberSummary($0)) })]
    }
    return Self.json([
      "since": wanted.since.map { .int($0) } ?? .null, "until": wanted.until.map { .int($0) } ?? .null,
      "bucketMilliseconds": .int(grouping.bucketMilliseconds), "groups": .array(groups.map { .string($0) }),
      "summary": Self.object(all.mapValues { Self.json(NumberSummary($0)) }), "buckets": .array(buckets),
      "readSince": Self.since(reach),
    ])
  }

  private static func json(_ summary: NumberSummary) -> JSONValue {
    [
      "count": .int(summary.count), "avg": .double(summary.average), "min": .double(summary.minimum),
      "p50": .double(summary.median), "p95": .double(summary.percentile95), "max": .double(summary.maximum),
    ]
  }

  // MARK: Questions

  /// A chart has a time: the last 24 hours unless the request names another.
  func timed(_ request: PageRequest) throws(CollectorRefusal) -> ReportFilter {
    var wanted = try filter(request)
    let until = wanted.until ?? collector.time.unixMilliseconds + 1
    let since = wanted.since ?? until - 86_400_000
    guard since < until else { throw CollectorRefusal(400, "since: must be before until") }
    (wanted.since, wanted.until) = (since, until)
    return wanted
  }

  private func grouping(_ request: PageRequest) throws(CollectorRefusal) -> ReportGrouping {
    let wanted = try timed(request)
    let buckets = try request.number("buckets", in: 1...400) ?? 60
    let seconds = ((wanted.until ?? 0) - (wanted.since ?? 0)) / 1000 / Int64(buckets)
    let width = Self.bucketWidths.first { $0 >= seconds } ?? Self.bucketWidths[Self.bucketWidths.count - 1]
    return ReportGrouping(bucketMilliseconds: width * 1000, key: try Self.key(request.http.parameter("by") ?? ""))
  }

  private static func key(_ word: String) throws(CollectorRefusal) -> ReportGrouping.Key {
    switch word {
    case "": return .nothing
    case "type": return .type
    case "namespace": return .namespace
    case "device": return .device
    case "kind": return .kind
    case _ where word.hasPrefix("meta."): return .meta(try path(String(word.dropFirst("meta.".count)), "by"))
    default: throw CollectorRefusal(400, "by: must be type, namespace, device, kind, or meta.KEY")
    }
  }

  /// The path of a field, as a condition on metas has it.
  static func path(_ text: String, _ parameter: String) throws(CollectorRefusal) -> [String] {
    do throws(MetaCondition.Fault) {
      let condition = try MetaCondition(text)
      if condition.comparison == .exists { return condition.path }
    } catch { throw CollectorRefusal(400, "\(parameter): \(error.reason)") }
    throw CollectorRefusal(400, "\(parameter): names one field of the meta, as `ms` or `net.code`")
  }
}
