import PrismBase
import PrismPacket
import PrismProtocol

/// Which reports are counted, or whose numbers are gathered, and how.
struct TallyQuestion: Sendable {
  let filter: ReportFilter
  let grouping: ReportGrouping
  /// Of the field whose numbers are wanted; nil: reports are counted.
  var path: [String]?
  /// Of the numbers.
  var limit = 0
}

/// Counts the reports of a question, or gathers their numbers, by time and group: the one rule for all stores. For one queue.
final class ReportTally {
  private let filter: ReportFilter
  private let grouping: ReportGrouping
  private let conditions: [FieldQuestion<Bool>]
  private let word: FieldQuestion<Int>?
  private let number: FieldQuestion<Double?>?
  private let repeats: FieldQuestion<Double?>?
  /// Of a row of `reduce`.
  private let sketch: FieldQuestion<Sketch?>?
  private let members: MemberQuestions
  private let words = Words()
  private var counted = TallyTable(0)
  private var numbered = TallyTable(NumberCounts())

  init(_ question: TallyQuestion) {
    (filter, grouping) = (question.filter, question.grouping)
    conditions = filter.metas.map { FieldQuestion($0) }
    members = MemberQuestions(filter)
    if case .meta(let path) = grouping.key {
      word = FieldQuestion(path, absent: 0) { [words] field, text in
        field.kind == .null ? 0 : words.number(of: String(decoding: field.bytes(in: text), as: UTF8.self))
      }
    } else {
      word = nil
    }
    number = question.path.map { FieldQuestion(number: $0) }
    repeats = grouping.countsRepeats ? FieldQuestion(number: ["REPEAT_COUNT"]) : nil
    sketch = question.path.map { path in
      FieldQuestion([ReportReduction.key, "fields", path.joined(separator: ".")], absent: nil) { field, text in
        (try? JSONValue(parsing: Array(field.bytes(in: text)))).flatMap { Sketch(json: $0) }
      }
    }
  }

  /// Memory of its numbers, as of `NumberCounts`.
  var size: Int { numbered.cells.reduce(0) { $0 + $1.element.size } }

  /// - Throws: it is damaged, and no report of it is counted.
  func add(_ block: BlockParts) throws {
    guard let ids = filter.ids else { return }
    let wanted = try members.runs(block).filter { $0.ids.overlaps(ids) }
    guard !wanted.isEmpty else { return }
    try block.readLines { lines in
      guard lines.rows.count == block.rows else { throw PacketError.countMismatch }
      var held: [[Bool]] = []
      for condition in conditions {
        guard let answers = try condition.answers(lines), answers.contains(true) else { return }
        held.append(answers)
      }
      let (numbers, sketches) = (try number?.answers(lines), try sketch?.answers(lines))
      guard number == nil || numbers != nil || sketches != nil else { return }
      let (groups, repeats) = (try word?.answers(lines), try repeats?.answers(lines))
      let values = try members.values(lines, hasTypes: grouping.key == .type)
      for run in wanted {
        let all = ids.contains(run.ids.lowerBound) && ids.contains(run.ids.upperBound)
        let ofRun = word(of: run)
        for place in run.rows where all || ids.contains(run.ids.lowerBound + Int64(place - run.rows.lowerBound)) {
          let line = lines.rows[place]
          guard let time = values.time(line, run, filter), held.allSatisfy({ $0[line] }) else { continue }
          var group = groups?[line] ?? ofRun
          if values.hasTypes {
            let type = members.type(values.types?[line], run)
            guard type.isWanted else { continue }
            if grouping.key == .type { group = words.number(of: type) }
          }
          if number == nil {
            counted.change(time, grouping, group) { $0 += ReportGrouping.reports(repeats?[line] ?? nil) }
          } else if let number = numbers?[line] {
            numbered.change(time, grouping, group) { $0.add(number) }
          } else if let sketch = sketches?[line] {
            numbered.change(time, grouping, group) { $0.add(sketch) }
          }
        }
      }
    }
  }

  /// Adds the answer of another tally of the same question.
  func add(_ part: Answer) {
    for one in part.counts { counted.change(one.time, grouping, words.number(of: one.group)) { $0 += one.count } }
    for one in part.numbers {
      numbered.change(one.time, grouping, words.number(of: one.group)) { $0.add(one.values) }
    }
  }

  /// Counts a block's reports by its head alone. - Returns: false: the block must tell, and no report of it is counted yet.
  func add(_ head: BlockHead) -> Bool {
    guard number == nil, repeats == nil, word == nil, conditions.isEmpty, let ids = filter.ids, ids.contains(head.id),
      ids.contains(head.last)
    else { return false }
    let hasDevice = filter.device != nil || grouping.key == .device
    guard let device = hasDevice ? head.onlyDevice : "", let cells = head.cells else { return false }
    var found: [(time: Int64, word: Int, count: Int)] = []
    for cell in cells where filter.wants(device, cell.namespace, cell.kind) {
      guard filter.type?.utf8.elementsEqual(cell.type.utf8) ?? true else { continue }
      let times = filter.axis == .created ? cell.created : cell.received
      guard filter.mayWant(times) else { continue }
      let time = times.lowerBound / grouping.bucketMilliseconds
      guard filter.wants(times.lowerBound), filter.wants(times.upperBound),
        times.upperBound / grouping.bucketMilliseconds == time
      else { return false }
      found.append((times.lowerBound, word(of: cell, device), cell.count))
    }
    for (time, word, count) in found { counted.change(time, grouping, word) { $0 += count } }
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

  /// 0 where each report has its own.
  private func word(of run: MemberQuestions.Run) -> Int {
    switch grouping.key {
    case .nothing, .meta, .type: 0
    case .namespace: words.number(of: run.namespace)
    case .device: words.number(of: run.device)
    case .kind: words.number(of: run.kind)
    }
  }

  // MARK: Answers

  typealias Answer = (counts: [ReportCount], numbers: [ReportNumbers])

  var answer: Answer { (counts, numbers) }

  var counts: [ReportCount] {
    counted.cells.compactMap { time, word, count in
      count == 0
        ? nil : ReportCount(time: time * grouping.bucketMilliseconds, group: words.texts[word], count: count)
    }
  }

  var numbers: [ReportNumbers] {
    numbered.cells.compactMap { time, word, values in
      guard !values.isEmpty else { return nil }
      var values = values
      values.settle()
      return ReportNumbers(time: time * grouping.bucketMilliseconds, group: words.texts[word], values: values)
    }
  }

  /// The words that reports are grouped by, each once. The first is empty.
  private final class Words {
    private static let scalarsMax = 200

    private var numbers = [ExactText(""): 0]
    private(set) var texts = [""]
    private var last = (text: ExactText(""), number: 0)
    /// By the places of types.
    private var ofTypes: [Int: Int] = [:]

    func number(of type: MemberQuestions.TypeWord) -> Int {
      if let known = ofTypes[type.place] { return known }
      ofTypes[type.place] = number(of: type.text)
      return number(of: type.text)
    }

    func number(of text: String) -> Int {
      if last.text == ExactText(text) { return last.number }
      last = (ExactText(text), add(text))
      return last.number
    }

    private func add(_ whole: String) -> Int {
      let isLong = whole.utf8.count > Self.scalarsMax
      let text = isLong ? String(String.UnicodeScalarView(whole.unicodeScalars.prefix(Self.scalarsMax))) : whole
      if let known = numbers[ExactText(text)] { return known }
      numbers[ExactText(text)] = texts.count
      texts.append(text)
      return texts.count - 1
    }
  }
}

/// Counts or numbers, by the numbers of buckets of time and of words. The last bucket and the first words are at hand.
private struct TallyTable<Element> {
  private struct Cell: Hashable { let number: Int64, word: Int }
  private static var atHandMax: Int { 1024 }

  private let nothing: Element
  private var rows: [Int64: [Element]] = [:]
  private var row: [Element] = []
  private var (start, end, number): (Int64, Int64, Int64) = (0, 0, 0)
  private var rare: [Cell: Element] = [:]

  init(_ nothing: Element) { self.nothing = nothing }

  /// - Parameter time: milliseconds since 1970.
  @inline(__always)
  mutating func change(_ time: Int64, _ grouping: ReportGrouping, _ word: Int, _ body: (inout Element) -> Void) {
    if time < start || time >= end { open(time / grouping.bucketMilliseconds, grouping.bucketMilliseconds) }
    guard word < Self.atHandMax else {
      let (cell, nothing) = (Cell(number: number, word: word), nothing)
      return body(&rare[cell, default: nothing])
    }
    while word >= row.count { row.append(nothing) }
    body(&row[word])
  }

  private mutating func open(_ number: Int64, _ width: Int64) {
    if !row.isEmpty { rows[self.number] = row }
    row = []
    row = rows.removeValue(forKey: number) ?? []
    self.number = number
    // Buckets before 1970 are looked up each time.
    start = max(0, number) * width
    end = number < 0 ? start : start.addingReportingOverflow(width).partialValue
  }

  var cells: [(number: Int64, word: Int, element: Element)] {
    let known = rows.map { $0 } + [(key: number, value: row)]
    return known.flatMap { number, row in row.enumerated().map { (number, $0.offset, $0.element) } }
      + rare.map { ($0.number, $0.word, $1) }
  }
}

extension ReportGrouping {
  /// Whether the heads of blocks are mostly enough to count a filter's reports.
  func isOfHeads(_ filter: ReportFilter) -> Bool {
    guard !countsRepeats, filter.metas.isEmpty, filter.device == nil, bucketMilliseconds >= BlockCounts.slot else {
      return false
    }
    switch key {
    case .nothing, .type, .namespace, .kind: return true
    case .device, .meta: return false
    }
  }
}
