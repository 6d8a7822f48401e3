import PrismProtocol

/// Counts the reports of a question, or gathers their numbers, by time and group: the one rule for all stores. For one queue.
final class ReportTally {
  private struct Cell: Hashable { let time: Int64, word: Int }
  private struct Number { let time: Int64, word: Int, value: Double }

  let filter: ReportFilter
  private let grouping: ReportGrouping
  private let conditions: [FieldQuestion<Bool>]
  private let word: FieldQuestion<Int>?
  private let number: FieldQuestion<Double?>?
  private let words = Words()
  /// Numbers that are still wanted.
  private var left: Int
  private var counted: [Cell: Int] = [:]
  private var numbered: [Number] = []

  /// - Parameters:
  ///   - path: of the field whose numbers are wanted; nil: reports are counted.
  ///   - limit: of the numbers.
  init(_ filter: ReportFilter, _ grouping: ReportGrouping, path: [String]? = nil, limit: Int = 0) {
    (self.filter, self.grouping, left) = (filter, grouping, limit)
    conditions = filter.metas.map { FieldQuestion($0) }
    if case .meta(let path) = grouping.key {
      word = FieldQuestion(path, absent: 0) { [words] field, text in
        field.kind == .null ? 0 : words.number(of: field.bytes(in: text)[...])
      }
    } else {
      word = nil
    }
    number = path.map { path in
      FieldQuestion(path, absent: nil) { field, text in
        guard field.kind == .number else { return nil }
        return Double(String(decoding: field.bytes(in: text), as: UTF8.self)).flatMap { $0.isFinite ? $0 : nil }
      }
    }
  }

  /// - Returns: whether more is wanted.
  func add(_ block: OpenedBlock) -> Bool {
    word?.beginBlock()
    number?.beginBlock()
    return block.forEach(filter, conditions) { report in
      let time = report.time(filter.axis) / grouping.bucketMilliseconds
      if let number {
        guard let value = number.of(report.row, block.reports) else { return true }
        numbered.append(Number(time: time, word: word(of: report, block), value: value))
        left -= 1
        return left > 0
      }
      counted[Cell(time: time, word: word(of: report, block)), default: 0] += 1
      return true
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
