import PrismProtocol

/// Which reports are counted, or whose numbers are gathered, and how.
struct TallyQuestion: Sendable {
  let filter: ReportFilter
  let grouping: ReportGrouping
  /// Of the field whose numbers are wanted; nil: reports are counted.
  var path: [String]?
  /// Of the numbers.
  var limit = 0

  /// Of the members that it reads.
  var keys: [[UInt8]] {
    var paths = filter.metas.map(\.path) + [path ?? []]
    if case .meta(let path) = grouping.key { paths.append(path) }
    return MetaFields.typeAndTimeKeys + paths.compactMap(\.first).map { Array($0.utf8) }
  }
}

/// Counts the reports of a question, or gathers their numbers, by time and group: the one rule for all stores. For one queue.
final class ReportTally {
  private struct Cell: Hashable { let time: Int64, word: Int }
  private struct Number { let time: Int64, word: Int, value: Double }

  private let filter: ReportFilter
  private let grouping: ReportGrouping
  private let conditions: [FieldQuestion<Bool>]
  private let word: FieldQuestion<Int>?
  private let number: FieldQuestion<Double?>?
  private let words = Words()
  /// Numbers that are still wanted.
  private var left: Int
  private var counted: [Cell: Int] = [:]
  private var numbered: [Number] = []

  init(_ question: TallyQuestion) {
    (filter, grouping, left) = (question.filter, question.grouping, question.limit)
    conditions = filter.metas.map { FieldQuestion($0) }
    if case .meta(let path) = grouping.key {
      word = FieldQuestion(path, absent: 0) { [words] field, text in
        field.kind == .null ? 0 : words.number(of: field.bytes(in: text)[...])
      }
    } else {
      word = nil
    }
    number = question.path.map { path in
      FieldQuestion(path, absent: nil) { field, text in
        guard field.kind == .number else { return nil }
        return Double(String(decoding: field.bytes(in: text), as: UTF8.self)).flatMap { $0.isFinite ? $0 : nil }
      }
    }
  }

  var wantsMore: Bool { number == nil || left > 0 }

  func add(_ block: OpenedBlock) {
    var (last, count): (Cell?, Int) = (nil, 0)
    _ = block.forEach(filter, conditions) { report in
      let time = report.time(filter.axis) / grouping.bucketMilliseconds
      if let number {
        guard let value = number.of(report.row, block.reports) else { return true }
        numbered.append(Number(time: time, word: word(of: report, block), value: value))
        left -= 1
        return left > 0
      }
      let cell = Cell(time: time, word: word(of: report, block))
      if cell != last {
        if let last { counted[last, default: 0] += count }
        (last, count) = (cell, 0)
      }
      count += 1
      return true
    }
    if let last { counted[last, default: 0] += count }
  }

  /// Adds the answer of another tally of the same question.
  func add(_ part: Answer) {
    for one in part.counts {
      let cell = Cell(time: one.time / grouping.bucketMilliseconds, word: words.number(of: one.group))
      counted[cell, default: 0] += one.count
    }
    numbered += part.numbers.prefix(left).map {
      Number(time: $0.time / grouping.bucketMilliseconds, word: words.number(of: $0.group), value: $0.value)
    }
    left -= min(left, part.numbers.count)
  }

  /// Counts a block's reports by its head alone. - Returns: false: the block must tell, and no report of it is counted yet.
  func add(_ head: BlockHead) -> Bool {
    guard number == nil, word == nil, conditions.isEmpty, let ids = filter.ids, ids.contains(head.id),
      ids.contains(head.last)
    else { return false }
    let hasDevice = filter.device != nil || grouping.key == .device
    guard let device = hasDevice ? head.onlyDevice : "", let cells = head.cells else { return false }
    var found: [(cell: Cell, count: Int)] = []
    for cell in cells where filter.wants(device, cell.namespace, cell.kind) {
      guard filter.type?.utf8.elementsEqual(cell.type.utf8) ?? true else { continue }
      let times = filter.axis == .created ? cell.created : cell.received
      let (since, until) = (filter.since ?? .min, filter.until ?? .max)
      guard times.upperBound >= since, times.lowerBound < until else { continue }
      let time = times.lowerBound / grouping.bucketMilliseconds
      guard times.lowerBound >= since, times.upperBound < until, times.upperBound / grouping.bucketMilliseconds == time
      else { return false }
      found.append((Cell(time: time, word: word(of: cell, device)), cell.count))
    }
    for (cell, count) in found { counted[cell, default: 0] += count }
    return true
  }

  private func word(of cell: BlockHead.Cell, _ device: String) -> Int {
    switch grouping.key {
    case .nothing, .meta: 0
    case .type: words.number(of: cell.type)
    case .namespace: words.number(of: cell.namespace)
    case .device: words.number(of: device)
    case .kind: words.number(of: cell.kind)
    }
  }

  private func word(of report: OpenedBlock.Report, _ block: OpenedBlock) -> Int {
    switch grouping.key {
    case .nothing: 0
    case .type: words.number(of: block.reports.bytes[report.row.type])
    case .namespace: words.number(of: report.run.stream.namespace.text)
    case .device: words.number(of: report.run.stream.device)
    case .kind: words.number(of: report.run.stream.kind.name)
    case .meta: word?.of(report.row, block.reports) ?? 0
    }
  }

  // MARK: Answers

  typealias Answer = (counts: [ReportCount], numbers: [ReportNumber])

  var answer: Answer { (counts, numbers) }

  var counts: [ReportCount] {
    counted.map { cell, count in
      ReportCount(time: cell.time * grouping.bucketMilliseconds, group: words.texts[cell.word], count: count)
    }
  }

  var numbers: [ReportNumber] {
    numbered.map { number in
      ReportNumber(
        time: number.time * grouping.bucketMilliseconds, group: words.texts[number.word], value: number.value)
    }
  }

  /// The words that reports are grouped by, each once. The first is empty.
  private final class Words {
    private static let scalarsMax = 200

    private var numbers: [String: Int] = ["": 0]
    private(set) var texts = [""]
    private var lastBytes: (bytes: ArraySlice<UInt8>, number: Int) = ([], 0)
    private var lastText = ("", 0)

    func number(of bytes: ArraySlice<UInt8>) -> Int {
      if lastBytes.bytes == bytes { return lastBytes.number }
      lastBytes = (bytes, add(String(decoding: bytes, as: UTF8.self)))
      return lastBytes.number
    }

    func number(of text: String) -> Int {
      if lastText.0 == text { return lastText.1 }
      lastText = (text, add(text))
      return lastText.1
    }

    private func add(_ whole: String) -> Int {
      let isLong = whole.utf8.count > Self.scalarsMax
      let text = isLong ? String(String.UnicodeScalarView(whole.unicodeScalars.prefix(Self.scalarsMax))) : whole
      if let known = numbers[text] { return known }
      numbers[text] = texts.count
      texts.append(text)
      return texts.count - 1
    }
  }
}

extension ReportGrouping {
  /// Whether the heads of blocks are mostly enough to count a filter's reports.
  func isOfHeads(_ filter: ReportFilter) -> Bool {
    guard filter.metas.isEmpty, filter.device == nil, bucketMilliseconds >= BlockCounts.slot else { return false }
    switch key {
    case .nothing, .type, .namespace, .kind: return true
    case .device, .meta: return false
    }
  }
}
