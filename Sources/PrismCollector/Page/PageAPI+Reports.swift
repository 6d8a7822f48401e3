import PrismBase
import PrismHTTP
import PrismOutputs
import PrismProtocol

// Reports: pages of them, one, its payload.
extension PageAPI {
  /// - Throws: 503 where the store can't be read.
  func ask<Result: Sendable>(_ body: () async throws(StoreFailure) -> Result) async throws(CollectorRefusal) -> Result {
    do throws(StoreFailure) { return try await body() } catch { throw .unavailable(error.description) }
  }

  private enum Order: String, CaseIterable { case oldest, newest }

  /// `GET /reports` of the API: newest first unless `order=oldest`.
  func reports(_ request: PageRequest) async throws(CollectorRefusal) -> HTTPResponse {
    let page = try await page(request, .newest)
    return page.answer(JSONValue(["next": page.next, "readSince": page.reach.since]))
  }

  /// The plain one: oldest first unless `order=newest`.
  func oldestReports(_ request: PageRequest) async throws(CollectorRefusal) -> HTTPResponse {
    try await page(request, .oldest).answer
  }

  /// - Parameter order: where the request names no other.
  private func page(_ request: PageRequest, _ order: Order) async throws(CollectorRefusal) -> ReportPage {
    var wanted = try ReportFilter(request)
    wanted.limit = try request.number("limit", in: ReportFilter.limits) ?? wanted.limit
    wanted.isNewestFirst = try request.word("order", Order.self) ?? order == .newest
    return try await page(wanted)
  }

  /// The first reports of the filter, in its order.
  func page(_ wanted: ReportFilter) async throws(CollectorRefusal) -> ReportPage {
    let (scan, store) = (scan, collector.store)
    return try await ask { () throws(StoreFailure) in try await scan.page(wanted, store.page) }
  }

  /// `GET /reports/{id}`
  func report(_ request: PageRequest) async throws(CollectorRefusal) -> HTTPResponse {
    .json(try await found(request).jsonText)
  }

  /// `GET /reports/{id}/payload`: always a file, of any content.
  func payload(_ request: PageRequest) async throws(CollectorRefusal) -> HTTPResponse {
    let found = try await found(request)
    return try found.payloadAnswer([("Content-Disposition", "attachment; filename=\"report-\(found.id).bin\"")])
  }

  private func found(_ request: PageRequest) async throws(CollectorRefusal) -> StoredReport {
    let (store, scope) = (collector.store, request.scope)
    guard let id = request.parts.first.flatMap({ Int64($0) }) else {
      throw CollectorRefusal(404, "a report's id is a whole number")
    }
    guard let found = try await ask({ () throws(StoreFailure) in try await store.report(id, scope) }) else {
      throw CollectorRefusal(404, "there is no report of this id; retention may have deleted it")
    }
    return found
  }

  /// `GET /types`
  func types(_ request: PageRequest) async throws(CollectorRefusal) -> HTTPResponse {
    let (queries, scope) = (scan.queries, request.scope)
    let types = try await ask { () throws(StoreFailure) in try await queries.types(scope, limit: 1000) }
    return Self.json([
      "types": types.map { JSONValue(["namespace": $0.namespace, "type": $0.type]) }
    ])
  }

  // MARK: Counts and numbers over time

  private static let bucketWidths: [Int64] = [
    1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400, 172_800, 604_800,
    2_592_000, 31_536_000,
  ]
  /// Groups of a chart; the others are one.
  private static let groupsMax = 12

  /// The next part of a question. It goes on where the same reader's same question came to, and begins where that is not known.
  private func counting(
    _ request: PageRequest, numbersOf path: [String]? = nil
  ) async throws(CollectorRefusal) -> ReportCounting {
    let (wanted, key) = (try timed(request), RunningQuestions.Key(request))
    var grouping = try grouping(request, wanted)
    grouping.countsRepeats = path == nil && wanted.type == ReportType.appCrash.text
    let begun = ReportCounting(wanted, grouping, numbersOf: path)
    let budget = try request.number("within", in: 0...20_000) ?? 20_000
    let questions = collector.access.page.questions
    var counting = questions.take(key) ?? begun
    do throws(StoreFailure) { try await counting.goOn(scan, within: .milliseconds(budget)) } catch {
      throw CollectorRefusal.unreadable
    }
    // Of a reader who has gone nothing is kept.
    if counting.goesOn, !Task.isCancelled { questions.keep(counting, key) }
    return counting
  }

  /// The members that each part has, with `others`.
  private static func part(
    _ counting: ReportCounting, _ groups: [ExactText], _ others: KeyValuePairs<String, any ControlValue>
  ) -> HTTPResponse {
    json(
      of: JSONValue([
        "since": counting.filter.since, "until": counting.filter.until,
        "bucketMilliseconds": counting.grouping.bucketMilliseconds, "groups": groups.map(\.text),
      ]).adding(others).adding([
        "readSince": counting.reach.since, "progress": JSONValue.double(counting.share), "goesOn": counting.goesOn,
      ]))
  }

  /// `GET /histogram`: how many reports there were, by time and group. Of other types than crashes it counts rows.
  func histogram(_ request: PageRequest) async throws(CollectorRefusal) -> HTTPResponse {
    let counting = try await counting(request)
    let counts = counting.counts
    let (groups, total) = Self.largest(counts)
    var cells: [Int64: [ExactText: Int]] = [:]
    for count in counts {
      cells[count.time, default: [:]][Self.shown(count.group, groups), default: 0] += count.count
    }
    let buckets = cells.sorted { $0.key < $1.key }.map { time, counts in
      JSONValue(["time": time, "counts": Self.byGroup(counts) { .int($0) }])
    }
    return Self.part(counting, groups, ["buckets": buckets, "total": total])
  }

  /// The largest groups, and how many reports all have.
  private static func largest(_ counts: [ReportCount]) -> (groups: [ExactText], total: Int) {
    var sums: [ExactText: Int] = [:]
    for count in counts { sums[ExactText(count.group), default: 0] += count.count }
    let sorted = sums.sorted { ($1.value, $0.key) < ($0.value, $1.key) }
    let groups = sorted.prefix(groupsMax).map(\.key)
    return (groups + (sorted.count > groupsMax ? [others] : []), sums.values.reduce(0, +))
  }

  private static let others = ExactText("…")

  private static func shown(_ group: String, _ groups: [ExactText]) -> ExactText {
    groups.contains(ExactText(group)) ? ExactText(group) : others
  }

  private static func byGroup<Value>(_ values: [ExactText: Value], _ json: (Value) -> JSONValue) -> JSONValue {
    .object(values.sorted { $0.key < $1.key }.map { .init($0.key.text, json($0.value)) })
  }

  /// `GET /aggregate`: the numbers of a field of the meta, by time and group.
  func aggregate(_ request: PageRequest) async throws(CollectorRefusal) -> HTTPResponse {
    guard let key = request.http.parameter("key") else {
      throw CollectorRefusal(400, "key: is missing; it names one field of the meta, as `ms` or `net.code`")
    }
    let path = try Self.path(key, "key")
    let counting = try await counting(request, numbersOf: path)
    let numbers = counting.numbers
    let groups = Self.largest(numbers.map { ReportCount(time: 0, group: $0.group, count: $0.values.total) }).groups
    var (all, cells) = ([ExactText: NumberCounts](), [Int64: [ExactText: NumberCounts]]())
    for number in numbers {
      let group = Self.shown(number.group, groups)
      all[group, default: NumberCounts()].add(number.values)
      cells[number.time, default: [:]][group, default: NumberCounts()].add(number.values)
    }
    let buckets = cells.sorted { $0.key < $1.key }.map { time, groups in
      JSONValue(["time": time, "groups": Self.byGroup(groups) { NumberSummary($0).json }])
    }
    let summary = Self.byGroup(all) { NumberSummary($0).json }
    return Self.part(counting, groups, ["summary": summary, "buckets": buckets])
  }

  // MARK: Questions

  /// A chart has a time: the last 24 hours unless the request names another.
  func timed(_ request: PageRequest) throws(CollectorRefusal) -> ReportFilter {
    var wanted = try ReportFilter(request)
    let until = wanted.until ?? collector.time.unixMilliseconds + 1
    let since = wanted.since ?? until - 86_400_000
    guard since < until else { throw CollectorRefusal(400, "since: must be before until") }
    (wanted.since, wanted.until) = (since, until)
    return wanted
  }

  private func grouping(_ request: PageRequest, _ wanted: ReportFilter) throws(CollectorRefusal) -> ReportGrouping {
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

extension ReportFilter {
  /// The parameters `PageRoutes.filter`, `after` and `before`. - Throws: 400 naming the parameter.
  init(_ request: PageRequest) throws(CollectorRefusal) {
    self.init(scope: request.scope)
    (namespace, type) = (request.http.parameter("namespace"), request.http.parameter("type"))
    (device, kind) = (request.http.parameter("device"), try Self.kind(request.http.parameter("kind")))
    (since, until) = (try Self.time("since", request), try Self.time("until", request))
    if let since, let until, since >= until { throw CollectorRefusal(400, "until: must be later than since") }
    axis = try request.word("time", Axis.self) ?? axis
    metas = try MetaCondition.all("meta", request.http)
    after = try request.number("after", in: 0...Int64.max) ?? after
    before = try request.number("before", in: 0...Int64.max)
  }

  private static func time(_ name: String, _ request: PageRequest) throws(CollectorRefusal) -> Int64? {
    let value = try request.number(name, in: 0...Int64.max)
    guard let value, 1_000_000_000..<100_000_000_000 ~= value else { return value }
    throw CollectorRefusal(400, "\(name): \(value) are seconds; give milliseconds since 1970: \(value)000")
  }
}

/// The figures of a set of numbers.
struct NumberSummary: Sendable, Equatable {
  let count: Int
  let sum: Double
  let minimum: Double, maximum: Double
  /// nil where some are sums of reduced reports.
  let median: Double?, percentile95: Double?
  /// The most that these are wrong, relative to them; 0: they are exact.
  let error: Double

  /// In parts, where the sum is more than a number holds.
  let average: Double

  var json: JSONValue {
    [
      "count": .int(count), "avg": .double(average), "min": .double(minimum),
      "p50": median.map { .double($0) } ?? .null, "p95": percentile95.map { .double($0) } ?? .null,
      "max": .double(maximum), "error": .double(error),
    ]
  }

  /// - Parameter given: at least one number.
  init(_ given: NumberCounts) {
    var numbers = given
    numbers.settle()
    (count, sum) = (numbers.total, numbers.sum)
    average = sum.isFinite ? sum / Double(count) : numbers.average
    guard let all = numbers.whole else {
      let values = numbers.values
      (minimum, maximum) = (values[0], values[values.count - 1])
      (median, percentile95, error) = (numbers.rank(50), numbers.rank(95), 0)
      return
    }
    (minimum, maximum) = (all.min, all.max)
    (median, percentile95, error) = (all.percentile(0.5), all.percentile(0.95), all.error)
  }
}
