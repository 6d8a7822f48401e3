import PrismOutputs
import PrismPacket
import PrismProtocol
import PrismTestSupport
import Testing

@testable import PrismCollector

/// Answers from the columns of a block, held against the whole metas of its reports.
@Suite("Questions of blocks") struct BlockQuestionTests {
  /// Members with values of all kinds of columns, and some that have no column.
  private static func member(_ key: String, using random: inout SeededRandom) -> String {
    let number = Int.random(in: -500...500, using: &random)
    let value =
      switch key {
      case "n": "\(number)"
      case "f": "\(number / 10).\(abs(number % 10))"
      case "w": random.pick([#""red""#, #""blue""#, #""r\u0065d""#])
      case "b": random.pick(["true", "false"])
      case "x": #""\#(String(UInt64.random(in: 1 << 60...UInt64.max, using: &random), radix: 16))""#
      case "i": #""run-\#(abs(number))""#
      case "t": #""\#(String(repeating: "ü", count: abs(number) % 7))\#(number)""#
      case "o": #"{"p":\#(number),"q":{"p":"deep"}}"#
      case "l": #"[{"a":\#(number)},{"a":1.50}]"#
      case "m":
        random.pick(["null", "1e400", "7", #""7""#, "[1]", #"{"p":7}"#, "123456789012345678901234567890", "-0.0"])
      case "CREATE_TIME": random.pick(["\(1_000_000 + number)", "\(number)", "1.5", "9\(number * number)"])
      case "SYS_CLOCK_STEP": #""\#(number)""#
      case "SYS_CLOCK_BOOT": random.pick([#""earlier""#, #""this""#])
      default: "\(number)"
      }
    let escaped = "\\u00" + String(key.utf8.first ?? 0, radix: 16) + key.dropFirst()
    return #""\#(random.oneIn(300) ? escaped : key)":\#(value)"#
  }

  private static let keys = [
    "n", "f", "w", "b", "x", "i", "t", "o", "l", "m", "CREATE_TIME", "SYS_CLOCK_STEP", "SYS_CLOCK_BOOT",
  ]

  /// Rows of some shapes, and of odd ones, with common information between them.
  private static func text(_ count: Int, using random: inout SeededRandom) -> [UInt8] {
    let shapes = (0..<4).map { _ in keys.shuffled(using: &random).prefix(Int.random(in: 2...9, using: &random)) }
    let types = ["t", "shop-order", "shop-", #"shop-\u0061"#]
    var lines: [String] = []
    for _ in 0..<count {
      if random.oneIn(20) {
        let members = random.pick(Array(shapes)).prefix(3).map { member($0, using: &random) }
        lines.append(#"{"$common":{\#((members + [#""MONITOR_TYPE":"u""#]).joined(separator: ","))}}"#)
      }
      if random.oneIn(100) { lines.append(#"{"$common":{}}"#) }
      let isOdd = random.oneIn(40)
      let chosen = isOdd ? Array(keys.shuffled(using: &random).prefix(4)) : Array(random.pick(shapes))
      var members = chosen.map { member($0, using: &random) }
      if isOdd { members += members.prefix(1) }
      if !random.oneIn(10) { members.insert(#""MONITOR_TYPE":"\#(random.pick(types))""#, at: 0) }
      lines.append((random.oneIn(200) ? " " : "") + "{\(members.joined(separator: ","))}")
    }
    return Array(lines.joined(separator: "\n").utf8)
  }

  private static func block(_ counts: [Int], using random: inout SeededRandom) throws -> ReportBlock {
    var (first, runs): (Int64, [ReportBlock.Run]) = (10, [])
    for count in counts {
      let namespace = try #require(NamespaceName(random.pick(["prism", "shop"])))
      let stream = StreamID(device: random.pick(["a", "b"]), namespace: namespace, kind: .meta)
      runs.append(
        ReportBlock.Run(
          first: first, count: count, stream: stream, packet: PacketID(unixMilliseconds: 1, using: &random),
          received: Int64.random(in: 900_000...1_100_000, using: &random),
          correction: Int64.random(in: -9...9, using: &random)))
      first += Int64(count + Int.random(in: 0...2, using: &random))
    }
    return ReportBlock(runs: runs, text: text(counts.reduce(0, +), using: &random))
  }

  private static let conditions = [
    "n >= 0", "n = 12", "n != 12", "n < 9999999999999999999", "f > 3.14", "f = -1.50", "w = red", "w ~ e", "b = true",
    "x > 8", "i = run-7", "t ~ ü1", "o.p > 100", "o.q.p = deep", "o = 1", "l", "m = 7", "m.p = 7", "m", "m != 7",
    "n ~ 1",
    "f = text", "f != text", "nothing", "CREATE_TIME > 1000000.5",
  ]

  @Test("a column answers as the metas do, whether its lines have a shape in common or not", arguments: [30, 700])
  func answers(count: Int) throws {
    var random = SeededRandom(seed: SeededRandom.announcedSeed("questions of \(count) rows"))
    for _ in 0..<6 * soakFactor {
      let block = try Self.block([count / 3, 1, count / 2], using: &random)
      let opened = try OpenedBlock(block, CommonCache())
      let packer = try RestPacker()
      let (head, body) = try block.row(opened.reports, packer)
      var reports: [StoredReport] = []
      _ = opened.forEach(ReportFilter(scope: .everything), []) {
        reports.append(opened.stored($0))
        return true
      }
      #expect(reports.count == head.rows)
      let parts = try BlockParts(head, body, packer)
      for text in Self.conditions + [""] {
        try Self.expect(parts, reports, text, using: &random)
      }
    }
  }

  private static func expect(
    _ parts: BlockParts, _ reports: [StoredReport], _ condition: String, using random: inout SeededRandom
  ) throws {
    var filter = ReportFilter(scope: .everything)
    if !condition.isEmpty { filter.metas = [try MetaCondition(condition)] }
    filter.axis = random.pick([.created, .received])
    filter.type = random.pick([nil, nil, "t", "order", #"shop-a"#, ""])
    filter.device = random.pick([nil, nil, "a"])
    filter.since = random.pick([nil, 1_000_000])
    let width: Int64 = random.pick([100, 500_000, ReportGrouping.wholeTime])
    let key: ReportGrouping.Key = random.pick(
      [.nothing, .type, .namespace, .device, .meta(["w"]), .meta(["n"]), .meta(["m"])])
    let question = TallyQuestion(
      filter: filter, grouping: ReportGrouping(bucketMilliseconds: width, key: key),
      path: random.pick([nil, ["n"], ["f"], ["m"], ["o", "p"]]), limit: .max)
    let tally = ReportTally(question)
    try tally.add(parts)
    var (counts, numbers) = ([String: Int](), [String: [Double]]())
    let (holds, word) = (filter.metas.map { FieldQuestion($0) }, Self.word(key))
    for report in reports {
      let time = filter.axis == .created ? report.createdTime ?? report.receivedTime : report.receivedTime
      guard time >= filter.since ?? .min, filter.device ?? report.device == report.device,
        filter.type ?? report.type == report.type, holds.allSatisfy({ $0.of(report.meta) })
      else { continue }
      let cell = "\(time / width * width) \(word(report))"
      guard let path = question.path else {
        counts[cell, default: 0] += 1
        continue
      }
      let value = FieldQuestion<Double?>(path, absent: nil) { field, text in
        field.kind == .number ? Double(String(decoding: field.bytes(in: text), as: UTF8.self)) : nil
      }
      if let number = value.of(report.meta), number.isFinite { numbers[cell, default: []].append(number) }
    }
    #expect(
      Dictionary(tally.counts.map { ("\($0.time) \($0.group)", $0.count) }, uniquingKeysWith: +) == counts,
      "\(condition) \(question)")
    let found = tally.numbers.map { ("\($0.time) \($0.group)", $0.values) }
    #expect(
      Dictionary(found) { first, _ in first } == numbers.mapValues { NumberCounts($0) }, "\(condition) \(question)")
  }

  private static func word(_ key: ReportGrouping.Key) -> (StoredReport) -> String {
    switch key {
    case .type: { $0.type }
    case .namespace: { $0.namespace }
    case .device: { $0.device }
    case .meta(let path):
      {
        FieldQuestion(path, absent: "") { field, text in
          field.kind == .null ? "" : String(decoding: field.bytes(in: text), as: UTF8.self)
        }.of($0.meta)
      }
    case .nothing, .kind: { _ in "" }
    }
  }

  @Test("numbers are kept once, with how often they came")
  func numbers() {
    var random = SeededRandom(seed: SeededRandom.announcedSeed("numbers"))
    let values = (0..<30_000).map { _ in Double(Int.random(in: 0..<5000, using: &random)) / 10 }
    var (counts, parts) = (NumberCounts(), [NumberCounts](repeating: NumberCounts(), count: 3))
    for (place, value) in values.enumerated() { parts[place % 3].add(value) }
    for part in parts { counts.add(part) }
    #expect(counts == NumberCounts(values) && counts.total == values.count && counts.size < 5100)
    // As a chart puts together many groups of few.
    var small = NumberCounts()
    for value in values { small.add(NumberCounts([value])) }
    small.settle()
    #expect(small == counts)
    let sorted = values.sorted()
    for percent in [1, 50, 95, 100] { #expect(counts.rank(percent) == sorted[(sorted.count * percent + 99) / 100 - 1]) }
  }
}
