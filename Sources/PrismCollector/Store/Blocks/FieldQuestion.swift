import PrismPacket
import PrismProtocol

/// A question about one field of a meta. A report's own members answer it, if they have the field's first key. Otherwise the
/// members that it has in common with others answer it, once for all of them.
final class FieldQuestion<Answer> {
  private let path: [[UInt8]]
  private let absent: Answer
  private let answer: (MetaField, Span<UInt8>) -> Answer
  /// The answers for a column of numbers, which are integers with their last digits as a fraction; nil: their texts tell.
  private let ofNumbers: (_ fractionDigits: Int) -> ((Int64) -> Answer)?
  /// By the places of common information in the block.
  private var known: [Int: Answer] = [:]

  /// - Parameters:
  ///   - absent: the answer for a report without the field.
  ///   - ofNumbers: the same answers for the numbers of a column, without their texts.
  ///   - answer: of the field, and the text that has it.
  init(
    _ path: [String], absent: Answer,
    ofNumbers: @escaping (_ fractionDigits: Int) -> ((Int64) -> Answer)? = { _ in nil },
    _ answer: @escaping (MetaField, Span<UInt8>) -> Answer
  ) {
    (self.path, self.absent) = (path.map { Array($0.utf8) }, absent)
    (self.answer, self.ofNumbers) = (answer, ofNumbers)
  }

  /// Before the reports of another block.
  func beginBlock() { known.removeAll(keepingCapacity: true) }

  func of(_ row: OpenedPacket.Row, _ reports: ReportRows) -> Answer {
    if let answer = find(path, in: reports.bytes.span.extracting(row.own)) { return answer }
    guard let common = row.common else { return absent }
    if let answer = known[common] { return answer }
    let object = reports.commons[common].information.object
    let answer = find(path, in: object.span) ?? absent
    known[common] = answer
    return answer
  }

  /// Of a whole object.
  func of(_ object: [UInt8]) -> Answer { find(path, in: object.span) ?? absent }

  /// - Returns: nil: the text does not have the first key.
  private func find(_ path: [[UInt8]], in text: Span<UInt8>) -> Answer? {
    switch MetaField.find(path, in: text) {
    case .noKey: nil
    case .noField: absent
    case .field(let field): answer(field, text)
    }
  }

  // MARK: Of blocks that are not opened

  /// The answers for all lines of a block, those of its common information too. - Returns: nil: each is that for no field.
  func answers(_ block: PackedLines) throws -> [Answer]? {
    var answers: [Answer] = []
    /// Lines without the first key: what they have in common with others answers for them.
    var open: [Int] = []
    func set(_ lines: [Int], _ answer: (Int) throws -> Answer) rethrows {
      if answers.isEmpty { answers = Array(repeating: absent, count: block.commons.count) }
      for (place, line) in lines.enumerated() { answers[line] = try answer(place) }
    }
    for (shape, lines) in block.shapes.enumerated() where !lines.isEmpty {
      switch try block.values(path, of: shape) {
      case .noKey: open += lines
      case .noField: set(lines) { _ in absent }
      case .one(let value):
        let one = of(value: value[...])
        set(lines) { _ in one }
      case .words(let words, let numbers):
        let each = words.map { of(value: $0[...]) }
        set(lines) { each[numbers[$0]] }
      case .numbers(let numbers, let least, let most):
        if let answer = ofNumbers(most) {
          set(lines) { answer(numbers[$0]) }
        } else {
          var known = Recent<Int64, Answer>()
          try set(lines) { place in
            try known.value(of: numbers[place], Int(truncatingIfNeeded: numbers[place])) {
              of(value: try PackedLines.text(of: numbers[place], least: least, most: most)[...])
            }
          }
        }
      case .texts(let text, let ranges): set(lines) { of(value: text[ranges[$0]]) }
      case .lines(let text, let ranges):
        set(lines) { place in
          let line = text[ranges[place]]
          let path = PackedLines.path(path, in: line)
          if let found = find(path, in: text.span.extracting(ranges[place])) { return found }
          open.append(lines[place])
          return absent
        }
      }
    }
    guard !answers.isEmpty else { return nil }
    for line in open where block.commons[line] >= 0 { answers[line] = answers[block.commons[line]] }
    return answers
  }

  private func of(value: ArraySlice<UInt8>) -> Answer {
    let text = value.span
    guard case .field(let field) = MetaField.find([], in: text) else { return absent }
    return answer(field, text)
  }
}

/// The last values for some keys: most come again soon.
struct Recent<Key: Equatable, Value> {
  private static var places: Int { 256 }

  private var entries = [(key: Key, value: Value)?](repeating: nil, count: places)

  /// - Parameter hash: of the key.
  mutating func value<Failure>(of key: Key, _ hash: Int, _ make: () throws(Failure) -> Value) throws(Failure) -> Value {
    let place = hash & (Self.places - 1)
    if let entry = entries[place], entry.key == key { return entry.value }
    let value = try make()
    entries[place] = (key, value)
    return value
  }
}

extension FieldQuestion where Answer == Bool {
  /// Whether a condition holds: the one rule for reports and records of all stores.
  convenience init(_ condition: MetaCondition) {
    let value = Array(condition.value.utf8)
    let number = condition.number.map { ExactNumber(Array($0.utf8).span) }
    let ofNumbers = { (fractionDigits: Int) in condition.ofNumbers(fractionDigits, number) }
    self.init(condition.path, absent: false, ofNumbers: ofNumbers) { field, text in
      switch condition.comparison {
      case .exists: return true
      case .contains: return field.kind == .string && field.bytes(in: text).contains(value)
      case .equal: return Self.equals(field, text, value, number)
      case .notEqual: return !Self.equals(field, text, value, number)
      case .less, .atMost, .more, .atLeast:
        if let number {
          return field.kind == .number && condition.comparison.holds(field.number(in: text), number)
        }
        guard field.kind == .string else { return false }
        return condition.comparison.holds(ByteText(field.bytes(in: text)), ByteText(value))
      }
    }
  }

  private static func equals(
    _ field: MetaField, _ text: Span<UInt8>, _ value: [UInt8], _ number: ExactNumber?
  ) -> Bool {
    switch field.kind {
    case .number: number.map { $0 == field.number(in: text) } ?? false
    case .string, .boolean, .null: field.bytes(in: text) == value
    case .list, .object: false
    }
  }
}

extension MetaCondition {
  /// The same for a column of numbers. Integers are in order: the first that is not below the condition's number decides.
  fileprivate func ofNumbers(_ fractionDigits: Int, _ wanted: ExactNumber?) -> ((Int64) -> Bool)? {
    guard let wanted else {
      let holds = comparison == .exists || comparison == .notEqual
      return { _ in holds }
    }
    func isBefore(_ end: (ExactNumber) -> Bool) -> (Int64) -> Bool {
      var (low, high) = (Int64.min, Int64.max)
      while low < high {
        let middle = Int64(((Int128(low) + Int128(high)) >> 1))
        guard let text = try? PackedLines.text(of: middle, least: 0, most: fractionDigits) else { break }
        if end(ExactNumber(text.span)) { low = middle + 1 } else { high = middle }
      }
      let first = low
      return { $0 < first }
    }
    let (isLess, isAtMost) = (isBefore { $0 < wanted }, isBefore { $0 <= wanted })
    switch comparison {
    case .exists: return { _ in true }
    case .contains: return { _ in false }
    case .less: return isLess
    case .atMost: return isAtMost
    case .more: return { !isAtMost($0) }
    case .atLeast: return { !isLess($0) }
    case .equal: return { isAtMost($0) && !isLess($0) }
    case .notEqual: return { !isAtMost($0) || isLess($0) }
    }
  }
}

private struct ByteText: Comparable {
  let bytes: [UInt8]
  init(_ bytes: [UInt8]) { self.bytes = bytes }
  static func < (a: Self, b: Self) -> Bool { a.bytes.lexicographicallyPrecedes(b.bytes) }
}

extension MetaField {
  fileprivate func number(in text: Span<UInt8>) -> ExactNumber { ExactNumber(text.extracting(range)) }
}
