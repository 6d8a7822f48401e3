import PrismProtocol

/// How reports are counted together: by time, and by one more word.
struct ReportGrouping: Sendable, Equatable {
  enum Key: Sendable, Equatable {
    case nothing, type, namespace, device, kind
    /// A field of the meta, by its path of keys.
    case meta([String])
  }

  /// The width of a bucket of time in milliseconds, from 1 on.
  var bucketMilliseconds: Int64
  var key: Key = .nothing
  /// Counts the reports that a row is for, as many as its `REPEAT_COUNT` says, in place of rows.
  var countsRepeats = false

  /// A row is for no more reports.
  static let weightMax = 1_000_000.0

  static func reports(_ repeats: Double?) -> Int { Int(max(1, min(weightMax, repeats ?? 1))) }

  /// One bucket for all time.
  static let wholeTime: Int64 = 1 << 62
}

/// How many reports one bucket of time has of one group.
struct ReportCount: Sendable, Equatable {
  /// The begin of the bucket, milliseconds since 1970, of the collector's clock.
  var time: Int64
  /// Empty where nothing is grouped by, or the meta has no such field.
  var group: String
  var count: Int
}

/// The numbers that reports of one time and group have in a field of their metas.
struct ReportNumbers: Sendable, Equatable {
  /// The begin of the bucket, milliseconds since 1970, of the collector's clock.
  var time: Int64
  /// Empty where nothing is grouped by, or the meta has no such field.
  var group: String
  var values: NumberCounts
}

/// Numbers, each different one once, with how often it came.
struct NumberCounts: Sendable, Equatable {
  private static let (waitingMax, ownSize) = (8192, 16)

  /// Ascending.
  private(set) var values: [Double] = []
  private(set) var counts: [UInt32] = []
  /// Not among them yet.
  private var waiting: [Double] = []
  /// Of numbers that were reduced on their devices.
  private var reduced: Sketch?

  init(_ numbers: [Double] = []) {
    waiting = numbers
    settle()
  }

  var isEmpty: Bool { values.isEmpty && waiting.isEmpty && reduced == nil }
  /// Memory that it takes, in numbers.
  var size: Int {
    isEmpty ? 0 : values.count + waiting.count + Self.ownSize + (reduced == nil ? 0 : Sketch.bucketsMax)
  }

  /// All that are settled, and those that were reduced.
  var total: Int { counts.reduce(reduced?.count ?? 0) { $0 + Int($1) } }

  /// Of the same.
  var sum: Double { zip(values, counts).reduce(reduced?.sum ?? 0) { $0 + $1.0 * Double($1.1) } }

  /// Of the same, without a sum of them.
  var average: Double {
    let count = Double(total)
    return zip(values, counts).reduce((reduced?.sum ?? 0) / count) { $0 + $1.0 / count * Double($1.1) }
  }

  /// Both in one; nil: no number was reduced, and each is known.
  var whole: Sketch? {
    guard var all = reduced else { return nil }
    for (value, count) in zip(values, counts) { all.add(value, times: Int(count)) }
    return all
  }

  /// The nearest rank: the smallest number that this share of all does not exceed. At least one number is settled.
  func rank(_ percent: Int) -> Double {
    var left = (total * percent + 99) / 100
    return zip(values, counts).first {
      left -= Int($1)
      return left <= 0
    }?.0 ?? values[values.count - 1]
  }

  mutating func add(_ value: Double) {
    waiting.append(value)
    if waiting.count >= max(Self.waitingMax, values.count) { settle() }
  }

  mutating func add(_ sketch: Sketch) {
    reduced = reduced ?? Sketch()
    reduced?.merge(sketch)
  }

  mutating func add(_ other: NumberCounts) {
    if let sketch = other.reduced { add(sketch) }
    var other = other
    other.settle()
    // Few numbers wait: a merge costs as much as all that are there.
    guard other.counts.reduce(0, { $0 + Int($1) }) > Self.waitingMax else {
      for (value, count) in zip(other.values, other.counts) { for _ in 0..<count { add(value) } }
      return
    }
    settle()
    merge(other.values, other.counts)
  }

  /// Sorts those that wait among the others.
  mutating func settle() {
    guard !waiting.isEmpty else { return }
    waiting.sort()
    var (values, counts): ([Double], [UInt32]) = ([], [])
    for value in waiting {
      if values.last == value {
        counts[counts.count - 1] += 1
      } else {
        values.append(value)
        counts.append(1)
      }
    }
    waiting = []
    merge(values, counts)
  }

  private mutating func merge(_ others: [Double], _ othersCounts: [UInt32]) {
    guard !values.isEmpty else {
      (values, counts) = (others, othersCounts)
      return
    }
    var (merged, mergedCounts): ([Double], [UInt32]) = ([], [])
    merged.reserveCapacity(values.count + others.count)
    mergedCounts.reserveCapacity(values.count + others.count)
    var (own, other) = (0, 0)
    while own < values.count || other < others.count {
      let takesOwn = other == others.count || own < values.count && values[own] <= others[other]
      let takesOther = own == values.count || other < others.count && others[other] <= values[own]
      merged.append(takesOwn ? values[own] : others[other])
      mergedCounts.append((takesOwn ? counts[own] : 0) + (takesOther ? othersCounts[other] : 0))
      own += takesOwn ? 1 : 0
      other += takesOther ? 1 : 0
    }
    (values, counts) = (merged, mergedCounts)
  }
}
