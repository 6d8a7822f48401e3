import PrismProtocol

/// Counts the reports of a question, or gathers their numbers, by time and group: the one rule for all stores, which hand it
/// their reports. For one queue.
final class ReportTally {
  private struct Cell: Hashable { let time: Int64, word: Int64 }
  private struct Number { let time: Int64, word: Int64, value: Double }

  private static let nearMax: Int64 = 1024
  /// Of a word that is a field of the meta.
  private static let wordScalarsMax = 200

  private let grouping: ReportGrouping
  private let conditions: [FieldQuestion<Bool>]
  private let word: FieldQuestion<Int64>?
  private let number: FieldQuestion<Double?>?
  private let words: Words
  /// Numbers that are still wanted.
  private var left: Int
  private var counted: [Cell: Int] = [:]
  /// Of the bucket that was read last, by word: few words, so no look-up. Reports lie nearly in the order of time.
  private var near = [Int](repeating: 0, count: Int(nearMax))
  private var time: Int64 = 0
  private var numbered: [Number] = []

  /// - Parameters:
  ///   - path: of the field whose numbers are wanted; nil: reports are counted.
  ///   - limit: of the numbers.
  init(_ filter: ReportFilter, _ grouping: ReportGrouping, path: [String]? = nil, limit: Int = 0) {
    (self.grouping, left) = (grouping, limit)
    conditions = filter.metas.map { FieldQuestion($0) }
    let words = Words()
    self.words = words
    if case .meta(let path) = grouping.key {
      word = FieldQuestion(path, absent: 0) { field, text in
        field.kind == .null ? 0 : words.number(of: field.bytes(in: text))
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

  var readsMetas: Bool { !conditions.isEmpty || word != nil || number != nil }
  var isFull: Bool { number != nil && left == 0 }

  /// - Parameter count: of reports that are alike.
  func add(_ report: ReportFacts, count: Int = 1) {
    guard conditions.allSatisfy({ $0.of(report) }) else { return }
    let time = report.time / grouping.bucketMilliseconds
    if let number {
      guard left > 0, let value = number.of(report) else { return }
      left -= 1
      numbered.append(Number(time: time, word: word(of: report), value: value))
      return
    }
    if time != self.time { flush(next: time) }
    let word = word(of: report)
    if 0..<Self.nearMax ~= word {
      near[Int(word)] += count
    } else {
      counted[Cell(time: time, word: word), default: 0] += count
    }
  }

  private func word(of report: ReportFacts) -> Int64 {
    switch grouping.key {
    case .nothing: 0
    case .type, .namespace: report.type
    case .device, .kind: report.stream
    case .meta: word?.of(report) ?? 0
    }
  }

  private func flush(next: Int64) {
    for (word, count) in near.enumerated() where count > 0 {
      counted[Cell(time: time, word: Int64(word)), default: 0] += count
      near[word] = 0
    }
    time = next
  }

  // MARK: Answers

  /// - Parameters:
  ///   - stream: the name of a stream's number.
  ///   - type: the name of a type's number.
  func counts<Failure>(
    _ stream: (Int64) throws(Failure) -> StreamID?, _ type: (Int64) throws(Failure) -> TypeName?
  ) throws(Failure) -> [ReportCount] {
    flush(next: time)
    var (names, counts): ([Int64: String], [ReportCount]) = ([:], [])
    for (cell, count) in counted {
      let group = if let known = names[cell.word] { known } else { try name(of: cell.word, stream, type) }
      names[cell.word] = group
      counts.append(ReportCount(time: cell.time * grouping.bucketMilliseconds, group: group, count: count))
    }
    return counts
  }

  func numbers<Failure>(
    _ stream: (Int64) throws(Failure) -> StreamID?, _ type: (Int64) throws(Failure) -> TypeName?
  ) throws(Failure) -> [ReportNumber] {
    var (names, numbers): ([Int64: String], [ReportNumber]) = ([:], [])
    numbers.reserveCapacity(numbered.count)
    for number in numbered {
      let group = if let known = names[number.word] { known } else { try name(of: number.word, stream, type) }
      names[number.word] = group
      numbers.append(
        ReportNumber(time: number.time * grouping.bucketMilliseconds, group: group, value: number.value))
    }
    return numbers
  }

  private func name<Failure>(
    of word: Int64, _ stream: (Int64) throws(Failure) -> StreamID?, _ type: (Int64) throws(Failure) -> TypeName?
  ) throws(Failure) -> String {
    switch grouping.key {
    case .nothing: ""
    case .type: try type(word)?.type ?? ""
    case .namespace: try type(word)?.namespace ?? ""
    case .device: try stream(word)?.device ?? ""
    case .kind: try stream(word)?.kind.name ?? ""
    case .meta: words.texts[Int(word)]
    }
  }

  /// The words of a field, each once. The first is empty.
  private final class Words {
    private var numbers: [String: Int64] = ["": 0]
    private(set) var texts = [""]

    func number(of bytes: [UInt8]) -> Int64 {
      var text = String(decoding: bytes, as: UTF8.self)
      if bytes.count > wordScalarsMax {
        text = String(String.UnicodeScalarView(text.unicodeScalars.prefix(wordScalarsMax)))
      }
      if let known = numbers[text] { return known }
      numbers[text] = Int64(texts.count)
      texts.append(text)
      return Int64(texts.count - 1)
    }
  }
}
