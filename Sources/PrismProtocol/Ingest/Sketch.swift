import Glibc

/// Numbers in little room: their count, sum, least and greatest, and an exponential histogram (docs/recorder.md, "Sketches").
///
/// Buckets grow by the factor `2^(2^-scale)`. The scale falls as the numbers spread, so that there are at most `bucketsMax`.
/// Sketches are merged in any order with the same outcome, which is that of one sketch over all numbers; only `sum` is rounded
/// where numbers are no integers.
public struct Sketch: Equatable, Sendable {
  /// From the first bucket to the last, of each sign.
  public static let bucketsMax = 320
  private static let scales = -3...7

  /// Every count ends here: the counts of others are merged, and no sum of them may pass what an integer holds.
  static let countMax = 1 << 53

  /// The numbers that were added, 2^53 at most.
  public private(set) var count = 0
  /// Their sum.
  public private(set) var sum = 0.0
  /// The least number; 0 without numbers.
  public private(set) var min = 0.0
  /// The greatest number; 0 without numbers.
  public private(set) var max = 0.0
  /// The scale of the buckets, -3 to 7.
  public private(set) var scale = scales.upperBound
  private var zeros = 0
  /// By the numbers of their buckets.
  private var positive: [Int: Int] = [:], negative: [Int: Int] = [:]

  public init() {}

  /// The most that a percentile is wrong, relative to the true value: 0.005 for 0.5 %.
  public var error: Double {
    let base = exp2(exp2(Double(-scale)))
    return (base - 1) / (base + 1)
  }

  /// Adds a number. One that is not finite is left out. - Parameter times: how often it came, 1 or more.
  /// - Parameter isSummed: it has no place in the histogram.
  public mutating func add(_ value: Double, times: Int = 1, isSummed: Bool = false) {
    guard value.isFinite else { return }
    (min, max) = count == 0 ? (value, value) : (Swift.min(min, value), Swift.max(max, value))
    (count, sum) = (Self.sum(count, times), Self.finite(sum + value * Double(times)))
    if isSummed { return }
    if value == 0 {
      zeros = Self.sum(zeros, times)
      return
    }
    let finest = Int((log2(abs(value)) * exp2(Double(Self.scales.upperBound))).rounded(.up)) - 1
    let (bucket, before) = (finest >> (Self.scales.upperBound - scale), positive.count + negative.count)
    if value > 0 {
      positive[bucket] = Self.sum(positive[bucket] ?? 0, times)
    } else {
      negative[bucket] = Self.sum(negative[bucket] ?? 0, times)
    }
    if positive.count + negative.count > before { fit() }
  }

  /// Adds the numbers of another sketch.
  public mutating func merge(_ other: Sketch) {
    guard other.count > 0 else { return }
    var other = other
    coarsen(to: other.scale)
    other.coarsen(to: scale)
    (min, max) = count == 0 ? (other.min, other.max) : (Swift.min(min, other.min), Swift.max(max, other.max))
    (count, zeros) = (Self.sum(count, other.count), Self.sum(zeros, other.zeros))
    sum = Self.finite(sum + other.sum)
    positive.merge(other.positive, uniquingKeysWith: Self.sum)
    negative.merge(other.negative, uniquingKeysWith: Self.sum)
    fit()
  }

  /// The numbers of an exponential histogram of OpenTelemetry, whose buckets have the same bounds.
  /// - Parameter min: nil: the bound of the lowest bucket. - Parameter max: nil: that of the highest.
  /// - Returns: nil for a scale below the least one here, and for counts that are impossible.
  public init?(
    scale: Int, zeros: Int, positive: [Int: Int], negative: [Int: Int], sum: Double, min: Double?, max: Double?
  ) {
    let numbers = [zeros] + positive.values + negative.values
    guard scale >= Self.scales.lowerBound, scale <= 64, sum.isFinite, numbers.count <= 1 << 16,
      numbers.allSatisfy({ (0..<1 << 40).contains($0) }),
      (Array(positive.keys) + Array(negative.keys)).allSatisfy({ (-1 << 41...1 << 41).contains($0) })
    else { return nil }
    (count, self.sum, self.zeros) = (numbers.reduce(0, Self.sum), sum, zeros)
    let shift = Swift.max(0, scale - Self.scales.upperBound)
    self.scale = scale - shift
    func joined(_ buckets: [Int: Int]) -> [Int: Int] {
      buckets.reduce(into: [:]) {
        if $1.value > 0 { $0[$1.key >> shift] = Self.sum($0[$1.key >> shift] ?? 0, $1.value) }
      }
    }
    (self.positive, self.negative) = (joined(positive), joined(negative))
    fit()
    let width = exp2(Double(-self.scale))
    func bound(_ bucket: Int) -> Double { Self.finite(exp2(Double(bucket) * width)) }
    let (low, high) = (self.positive.keys.min().map(bound), self.positive.keys.max().map { bound($0 + 1) })
    let (least, most) = (self.negative.keys.max().map { -bound($0 + 1) }, self.negative.keys.min().map { -bound($0) })
    self.min = min ?? least ?? (zeros > 0 ? 0 : low ?? 0)
    self.max = Swift.max(self.min, max ?? high ?? (zeros > 0 ? 0 : most ?? 0))
  }

  /// The numbers that were added since `earlier`; its least and greatest stay. nil: `earlier` has others.
  public func since(_ earlier: Sketch) -> Sketch? {
    var (news, earlier) = (self, earlier)
    news.coarsen(to: earlier.scale)
    earlier.coarsen(to: news.scale)
    func left(_ new: [Int: Int], _ old: [Int: Int]) -> [Int: Int] {
      new.merging(old.mapValues { -$0 }, uniquingKeysWith: +).filter { $0.value != 0 }
    }
    (news.count, news.sum, news.zeros) = (count - earlier.count, Self.finite(sum - earlier.sum), zeros - earlier.zeros)
    (news.positive, news.negative) = (left(news.positive, earlier.positive), left(news.negative, earlier.negative))
    let counts = [news.count, news.zeros] + news.positive.values + news.negative.values
    return counts.allSatisfy { $0 >= 0 } ? news : nil
  }

  /// Of counts up to `countMax`, which it does not exceed.
  static func sum(_ first: Int, _ second: Int) -> Int { Swift.min(first + second, countMax) }

  /// JSON has no infinity.
  private static func finite(_ sum: Double) -> Double {
    Swift.min(Swift.max(sum, -.greatestFiniteMagnitude), .greatestFiniteMagnitude)
  }

  private mutating func fit() {
    while scale > Self.scales.lowerBound, Swift.max(Self.span(positive), Self.span(negative)) > Self.bucketsMax {
      coarsen(to: scale - 1)
    }
  }

  /// Joins buckets in pairs until the scale is `lower` or less.
  public mutating func coarsen(to lower: Int) {
    while scale > Swift.max(lower, Self.scales.lowerBound) {
      scale -= 1
      positive = Self.halved(positive)
      negative = Self.halved(negative)
    }
  }

  /// The number that `share` of all numbers do not exceed, within `error`; nil without numbers, and where some were sums only.
  /// - Parameter share: 0 to 1; 0.95 for the 95th percentile.
  public func percentile(_ share: Double) -> Double? {
    guard count > 0, zeros + positive.values.reduce(0, +) + negative.values.reduce(0, +) == count else { return nil }
    var rest = Swift.min(Swift.max(Int((share * Double(count)).rounded(.up)), 1), count)
    func clamped(_ value: Double) -> Double { Swift.min(Swift.max(value, min), max) }
    for (bucket, count) in negative.sorted(by: { $0.key > $1.key }) {
      rest -= count
      if rest <= 0 { return clamped(-middle(bucket)) }
    }
    rest -= zeros
    if rest <= 0 { return clamped(0) }
    for (bucket, count) in positive.sorted(by: { $0.key < $1.key }) {
      rest -= count
      if rest <= 0 { return clamped(middle(bucket)) }
    }
    return max
  }

  /// As far from both ends of a bucket, relative to them.
  private func middle(_ bucket: Int) -> Double {
    let width = exp2(Double(-scale))
    return exp2(Double(bucket) * width) * (1 + error)
  }

  private static func span(_ buckets: [Int: Int]) -> Int {
    buckets.isEmpty ? 0 : buckets.keys.max()! - buckets.keys.min()! + 1
  }

  private static func halved(_ buckets: [Int: Int]) -> [Int: Int] {
    buckets.reduce(into: [:]) { $0[$1.key >> 1] = sum($0[$1.key >> 1] ?? 0, $1.value) }
  }

  // MARK: JSON

  /// `{"count":3,"sum":6,"min":1,"max":3,"scale":7,"zeros":0,"positive":[FIRST BUCKET, COUNT, COUNT …]}`.
  public var json: JSONValue {
    var members: [JSONValue.Member] = [
      .init("count", .int(count)), .init("sum", Self.number(sum)), .init("min", Self.number(min)),
      .init("max", Self.number(max)), .init("scale", .int(scale)), .init("zeros", .int(zeros)),
    ]
    for (name, buckets) in [("positive", positive), ("negative", negative)] where !buckets.isEmpty {
      let (first, last) = (buckets.keys.min()!, buckets.keys.max()!)
      members.append(.init(name, .array([.int(first)] + (first...last).map { .int(buckets[$0] ?? 0) })))
    }
    return .object(members)
  }

  /// `json` without the histogram: sketches that are made of it have no percentiles.
  public var sums: JSONValue {
    .object((json.object ?? []).filter { ["count", "sum", "min", "max"].contains($0.key) })
  }

  /// nil if it is not one that `json` or `sums` wrote.
  public init?(json: JSONValue) {
    guard let count = json["count"]?.int, let sum = json["sum"]?.double, let min = json["min"]?.double,
      let max = json["max"]?.double, min <= max, (0...Self.countMax).contains(count)
    else { return nil }
    (self.count, self.sum, self.min, self.max) = (count, sum, min, max)
    if json["scale"] == nil { return }
    guard let scale = json["scale"]?.int, Self.scales.contains(scale), let zeros = json["zeros"]?.int, zeros >= 0,
      let positive = Self.buckets(json["positive"]), let negative = Self.buckets(json["negative"])
    else { return nil }
    var all = zeros
    for part in [positive, negative].flatMap(\.values) {
      let (sum, overflows) = all.addingReportingOverflow(part)
      guard !overflows else { return nil }
      all = sum
    }
    guard all == count else { return nil }
    self.scale = scale
    (self.zeros, self.positive, self.negative) = (zeros, positive, negative)
  }

  /// An integer without a fraction, so that sums of integers read as such; past 2^53 it may be rounded, and reads so.
  public static func number(_ value: Double) -> JSONValue {
    abs(value) <= Double(countMax) ? Int(exactly: value).map { .int($0) } ?? .double(value) : .double(value)
  }

  private static func buckets(_ value: JSONValue?) -> [Int: Int]? {
    guard let value else { return [:] }
    guard let numbers = value.array?.map({ $0.int ?? -1 << 62 }), (2...bucketsMax + 1).contains(numbers.count),
      abs(numbers[0]) < 1 << 20, numbers.dropFirst().allSatisfy({ $0 >= 0 })
    else { return nil }
    return numbers.dropFirst().enumerated().reduce(into: [:]) {
      if $1.element > 0 { $0[numbers[0] + $1.offset] = $1.element }
    }
  }
}
