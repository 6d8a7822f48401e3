import PrismBase
import PrismPacket
import PrismProtocol

/// Takes a metric apart into reports of a point each, for a namespace that reduces them (docs/recorder.md, "Reduce"). Pure.
struct MetricPoints {
  struct Part {
    let members: [UInt8]
    /// Milliseconds since 1970; nil: the point carries no time.
    let time: Int64?
  }

  /// A metric with more values is not taken apart: its tree would take more memory than its request has.
  private static let valuesMax = 100_000
  /// Of the place of a bucket.
  private static let offsets = -1 << 40...1 << 40
  /// As `AggregationTemporality` numbers it.
  private static let cumulative = 2

  private let metric: JSONValue
  /// `service.name`.
  private let service: String?
  /// Of the resource and the scope.
  private let origin: [UInt8]
  private let bytesMax: Int

  /// - Parameter members: of a metric, as JSON without braces.
  /// - Returns: nil: no kind of metric whose points can be added up.
  static func parts(of members: [UInt8], service: String?, origin: [UInt8], bytesMax: Int) -> [Part]? {
    guard
      let metric = try? JSONValue(
        parsingMembers: members, valuesMax: valuesMax, allowsDuplicateKeys: true)
    else { return nil }
    let points = MetricPoints(metric: metric, service: service, origin: origin, bytesMax: bytesMax)
    for (kind, numbers) in [
      ("gauge", Self.gauge), ("sum", Self.sum), ("histogram", Self.histogram),
      ("exponentialHistogram", Self.exponential),
    ] {
      guard let data = metric[kind], let list = data["dataPoints"]?.array else { continue }
      return list.compactMap { points.part(of: $0, kind, data, numbers) }
    }
    return nil
  }

  private func part(
    of point: JSONValue, _ kind: String, _ data: JSONValue, _ numbers: (JSONValue, JSONValue) -> [JSONValue.Member]?
  ) -> Part? {
    guard (point["flags"]?.int ?? 0) & 1 == 0, var numbers = numbers(point, data) else { return nil }
    numbers.insert(.init("count", 1), at: 0)
    let tags = (point["attributes"]?.array ?? []).compactMap { attribute in
      attribute["key"]?.string.map { JSONValue.Member($0, Self.tag(attribute["value"])) }
    }.sorted { $0.key < $1.key }
    let nanoseconds = point["timeUnixNano"]?.string.flatMap { Int64($0) } ?? 0
    if Self.countsOn(kind, data) {
      // Programs with equal resources count from their own starts.
      let start = point["startTimeUnixNano"]?.string.flatMap { Int($0) } ?? 0
      let name = origin + JSONValue.object(tags).bytes + (metric["name"]?.bytes ?? []) + "\(start)".utf8
      numbers += [
        .init("stream", .string(Hex.encode(((try? Hashing.sha256(name)) ?? []).prefix(8)))),
        .init("start", .int(start)), .init("time", .int(Int(nanoseconds))),
      ]
    }
    func text(_ tags: [JSONValue.Member]) -> [UInt8] {
      var members: [JSONValue.Member] = [
        .init("metric", metric["name"] ?? ""), .init("kind", .string(kind)),
      ]
      if let unit = metric["unit"]?.string, !unit.isEmpty { members.append(.init("unit", .string(unit))) }
      if let service { members.append(.init("service", .string(service))) }
      if let bounds = point["explicitBounds"], kind == "histogram" { members.append(.init("bounds", bounds)) }
      if !tags.isEmpty { members.append(.init("tags", .object(tags))) }
      members.append(.init(ReportReduction.key, .object(numbers)))
      return Array(JSONValue.object(members).bytes.dropFirst().dropLast())
    }
    let whole = text(tags)
    let milliseconds = nanoseconds / 1_000_000
    let isPossible = CreatedTime.least...CreatedTime.greatest ~= milliseconds
    return Part(members: whole.count > bytesMax ? text([]) : whole, time: isPossible ? milliseconds : nil)
  }

  /// Whether the points of a metric count on from a start. A sum that may fall does not: it is a gauge.
  private static func countsOn(_ kind: String, _ data: JSONValue) -> Bool {
    kind != "gauge" && data["aggregationTemporality"]?.int == cumulative
      && (kind != "sum" || data["isMonotonic"] == true)
  }

  private static func tag(_ value: JSONValue?) -> JSONValue {
    guard let member = value?.object?.first else { return "" }
    if member.key == "intValue" { return member.value.string.flatMap { Int($0) }.map { .int($0) } ?? member.value }
    return member.value
  }

  // MARK: The numbers of a point; nil: it has no number that can be added up.

  private static func number(_ point: JSONValue) -> Double? {
    double(point["asInt"]) ?? double(point["asDouble"])
  }

  /// NaN and the infinities can't be added up.
  private static func double(_ value: JSONValue?) -> Double? {
    (value?.double ?? value?.string.flatMap { Double($0) }).flatMap { $0.isFinite ? $0 : nil }
  }

  private static func gauge(_ point: JSONValue, _ data: JSONValue) -> [JSONValue.Member]? {
    number(point).map { [.init("steps", .array([Sketch.number($0)]))] }
  }

  /// One that may fall is a gauge, and a change of it a step.
  private static func sum(_ point: JSONValue, _ data: JSONValue) -> [JSONValue.Member]? {
    guard let number = number(point) else { return nil }
    let isCumulative = data["aggregationTemporality"]?.int == cumulative
    if isCumulative { return data["isMonotonic"] == true ? [.init("total", .double(number))] : gauge(point, data) }
    var sums = Sketch()
    sums.add(number, isSummed: true)
    return [.init("value", sums.sums)]
  }

  private static func counts(_ value: JSONValue?) -> [Int] {
    (value?.array ?? []).map { $0.string.flatMap { Int($0) } ?? $0.int ?? -1 }
  }

  /// Least and greatest are those of its buckets where the point does not say them.
  private static func histogram(_ point: JSONValue, _ data: JSONValue) -> [JSONValue.Member]? {
    let (buckets, bounds) = (counts(point["bucketCounts"]), (point["explicitBounds"]?.array ?? []).compactMap(\.double))
    guard let count = point["count"]?.string.flatMap({ Int($0) }), (0..<1 << 53).contains(count),
      buckets.allSatisfy({ (0..<1 << 53).contains($0) }), buckets.isEmpty || buckets.count == bounds.count + 1
    else { return nil }
    let sum = double(point["sum"]) ?? 0
    let (first, last) = (buckets.firstIndex { $0 > 0 } ?? 0, buckets.lastIndex { $0 > 0 } ?? 0)
    let mean = count == 0 ? 0 : sum / Double(count)
    let least = bounds.isEmpty ? mean : first == 0 ? min(bounds[0], mean) : bounds[first - 1]
    let greatest = bounds.isEmpty ? mean : last == bounds.count ? max(bounds[last - 1], mean) : bounds[last]
    let value: JSONValue = [
      "count": .int(count), "sum": Sketch.number(sum), "min": Sketch.number(double(point["min"]) ?? least),
      "max": Sketch.number(double(point["max"]) ?? greatest),
    ]
    let numbers: [JSONValue.Member] = [.init("value", value)]
    return buckets.isEmpty ? numbers : numbers + [.init("buckets", .array(buckets.map { .int($0) }))]
  }

  private static func exponential(_ point: JSONValue, _ data: JSONValue) -> [JSONValue.Member]? {
    func buckets(_ key: String) -> [Int: Int] {
      let first = point[key]?["offset"]?.int ?? 0
      return counts(point[key]?["bucketCounts"]).enumerated().reduce(into: [:]) { $0[first + $1.offset] = $1.element }
    }
    guard ["positive", "negative"].allSatisfy({ offsets.contains(point[$0]?["offset"]?.int ?? 0) }) else { return nil }
    let zeros = point["zeroCount"]?.string.flatMap { Int($0) } ?? 0
    return Sketch(
      scale: point["scale"]?.int ?? 0, zeros: zeros, positive: buckets("positive"), negative: buckets("negative"),
      sum: double(point["sum"]) ?? 0, min: double(point["min"]), max: double(point["max"])
    ).map { [.init("value", $0.json)] }
  }
}
