import PrismProtocol

/// Numbers of a stream of OpenTelemetry that counts from its start on: what is new in them since the last ones.
enum CumulativePart {
  /// Totals decide, not times: clocks step, and points come late. Times order only points of which one counts less.
  /// - Parameter before: the last part of the same stream. It stays the last one if nothing is new.
  /// - Returns: nil: nothing is new.
  static func news(in part: JSONValue, since before: JSONValue) -> JSONValue? {
    let (start, time) = times(of: part)
    let (lastStart, lastTime) = times(of: before)
    if start == lastStart, let change = change(from: before, to: part) {
      return total(of: part) == total(of: before) && time <= lastTime ? nil : change
    }
    return start > lastStart || start == 0 && lastStart == 0 && time > lastTime ? whole(part) : nil
  }

  static func times(of part: JSONValue) -> (start: Int, time: Int) {
    (part["start"]?.int ?? 0, part["time"]?.int ?? 0)
  }

  private static func total(of part: JSONValue) -> Double? { (part["total"] ?? part["value"]?["count"])?.double }

  /// nil: one of its numbers fell.
  private static func change(from before: JSONValue, to part: JSONValue) -> JSONValue? {
    if let total = part["total"]?.double {
      let change = total - (before["total"]?.double ?? 0)
      return change < 0 ? nil : sum(change)
    }
    let (new, old) = (buckets(part), buckets(before))
    let changes = zip(new, old).map { $0 - $1 }
    guard let value = part["value"].flatMap({ Sketch(json: $0) }),
      let earlier = before["value"].flatMap({ Sketch(json: $0) }), let news = value.since(earlier),
      new.count == old.count, changes.allSatisfy({ $0 >= 0 })
    else { return nil }
    return numbers(news.percentile(0) == nil ? news.sums : news.json, changes)
  }

  /// All that a stream counted since its start.
  static func whole(_ part: JSONValue) -> JSONValue {
    part["total"]?.double.map { sum($0) } ?? numbers(part["value"] ?? .null, buckets(part))
  }

  private static func sum(_ change: Double) -> JSONValue {
    var sums = Sketch()
    sums.add(change, isSummed: true)
    return numbers(sums.sums, [])
  }

  private static func numbers(_ value: JSONValue, _ buckets: [Int]) -> JSONValue {
    ["count": 1, "value": value, "buckets": .array(buckets.map { .int($0) })]
  }

  static func buckets(_ part: JSONValue) -> [Int] { (part["buckets"]?.array ?? []).map { $0.int ?? 0 } }
}
