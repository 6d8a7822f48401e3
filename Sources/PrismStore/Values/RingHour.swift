import PrismProtocol

/// The fate of a namespace's kept reports in the hour that goes on, by type. It is a note, written in the transaction of the
/// rows that it counts. Kept rows themselves are counted from their tables (`RowSegment.Kept`).
struct RingHour: Sendable, Equatable {
  static let key = "ring"
  /// Types with a line of their own; further ones are counted as `other`.
  static let typesMax = 40

  /// A fate of kept reports.
  enum Fate: String, CaseIterable {
    case overwritten
    /// They were let go by a trigger.
    case triggered
    /// They went into the answer to a question.
    case asked
    /// They stay: a budget does not allow more, or `ask.allow` does not have their type.
    case refused
    /// They stay, because enough devices have sent for the trigger.
    case declined
  }

  /// By the held clock, in milliseconds.
  let began: Int64
  private(set) var types: [ReportType: [Int]] = [:]

  init(began: Int64) { self.began = began }

  mutating func add(_ count: Int, _ fate: Fate, _ type: ReportType) {
    guard count > 0 else { return }
    let place = types[type] != nil || types.count < Self.typesMax ? type : .other
    types[place, default: Array(repeating: 0, count: Fate.allCases.count)][Fate.allCases.firstIndex(of: fate)!] += count
  }

  init?(note: [UInt8]) {
    guard let json = try? JSONValue(parsing: note), let began = json["began"]?.int else { return nil }
    self.began = Int64(began)
    for member in json["types"]?.object ?? [] {
      guard let type = ReportType(member.key) else { continue }
      let counts = member.value.array?.compactMap(\.int) ?? []
      for (fate, count) in zip(Fate.allCases, counts) { add(count, fate, type) }
    }
  }

  var note: [UInt8] {
    let counts = types.map { JSONValue.Member($0.key.text, .array($0.value.map { .int($0) })) }
    return JSONValue.object([.init("began", .int(Int(began))), .init("types", .object(counts))]).bytes
  }

  /// The meta of its report, without braces: types with the most kept reports first, further ones together as `other`.
  func body(_ kept: [ReportType: RowCount], seconds: Int) -> [UInt8] {
    typealias Line = (type: ReportType, kept: RowCount, counts: [Int])
    let none = Array(repeating: 0, count: Fate.allCases.count)
    var lines: [Line] = Set(kept.keys).union(types.keys).map { ($0, kept[$0] ?? RowCount(), types[$0] ?? none) }
    lines.sort { ($1.kept.rows, $0.type) < ($0.kept.rows, $1.type) }
    while lines.count > Self.typesMax, let last = lines.popLast() {
      let place = lines.firstIndex { $0.type == .other } ?? Self.typesMax - 1
      let line = lines[place]
      lines[place] = (.other, line.kept + last.kept, zip(line.counts, last.counts).map { $0 + $1 })
    }
    let texts = lines.map { line in
      let numbers =
        [("kept", line.kept.rows), ("bytes", line.kept.bytes)] + zip(Fate.allCases.map(\.rawValue), line.counts)
      return JSONValue.object(
        [.init("type", .string(line.type.text))] + numbers.map { .init($0.0, .int($0.1)) })
    }
    return Array(
      JSONValue.object([.init("seconds", .int(seconds)), .init("types", .array(texts))]).bytes.dropFirst().dropLast())
  }
}

/// Rows, and the sum of their sizes.
struct RowCount: Sendable, Equatable {
  var rows = 0, bytes = 0

  static func + (a: Self, b: Self) -> Self { Self(rows: a.rows + b.rows, bytes: max(0, a.bytes + b.bytes)) }
  static prefix func - (count: Self) -> Self { Self(rows: -count.rows, bytes: -count.bytes) }
}
