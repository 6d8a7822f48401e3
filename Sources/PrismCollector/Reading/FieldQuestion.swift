import PrismProtocol

/// A report as a question sees it, in the store's memory.
struct ReportFacts {
  /// When it was received, milliseconds since 1970.
  var time: Int64
  /// The store's numbers of its stream and its type.
  var stream: Int64, type: Int64
  /// Empty where no metas are read.
  var text = ReportText(own: UnsafeRawBufferPointer(start: nil, count: 0))
  /// Names the common members of `text` among all of the store; nil: there are no such members.
  var context: Int64?
}

/// A question about one field of a meta. A report's own members answer it, if they have the field's first key. Otherwise the
/// members that it has in common with others answer it, once for all of them.
final class FieldQuestion<Answer> {
  private static var knownMax: Int { 65_536 }

  private let path: [[UInt8]]
  private let absent: Answer
  private let answer: (MetaField, Span<UInt8>) -> Answer
  /// By the numbers of contexts.
  private var known: [Int64: Answer] = [:]
  private var last: (context: Int64, answer: Answer)?

  /// - Parameters:
  ///   - absent: the answer for a report without the field.
  ///   - answer: of the field, and the text that has it.
  init(_ path: [String], absent: Answer, _ answer: @escaping (MetaField, Span<UInt8>) -> Answer) {
    (self.path, self.absent, self.answer) = (path.map { Array($0.utf8) }, absent, answer)
  }

  func of(_ report: ReportFacts) -> Answer {
    if let answer = find(in: report.text.own) { return answer }
    guard let common = report.text.common else { return absent }
    guard let context = report.context else { return find(in: common) ?? absent }
    if let last, last.context == context { return last.answer }
    let answer = known[context] ?? find(in: common) ?? absent
    if known.count >= Self.knownMax { known = [:] }
    known[context] = answer
    last = (context, answer)
    return answer
  }

  /// - Returns: nil: the text does not have the first key.
  private func find(in text: UnsafeRawBufferPointer) -> Answer? {
    let text = text.bindMemory(to: UInt8.self).span
    switch MetaField.find(path, in: text) {
    case .noKey: return nil
    case .noField: return absent
    case .field(let field): return answer(field, text)
    }
  }
}

extension FieldQuestion where Answer == Bool {
  /// Whether a condition holds: the one rule for reports of all stores.
  convenience init(_ condition: MetaCondition) {
    let value = Array(condition.value.utf8)
    let number = condition.number.map { ExactNumber(Array($0.utf8).span) }
    self.init(condition.path, absent: false) { field, text in
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

/// Text in the order of its bytes.
private struct ByteText: Comparable {
  let bytes: [UInt8]
  init(_ bytes: [UInt8]) { self.bytes = bytes }
  static func < (a: Self, b: Self) -> Bool { a.bytes.lexicographicallyPrecedes(b.bytes) }
}

extension MetaCondition.Comparison {
  fileprivate func holds<Value: Comparable>(_ a: Value, _ b: Value) -> Bool {
    switch self {
    case .less: a < b
    case .atMost: a <= b
    case .more: a > b
    case .atLeast: a >= b
    case .equal: a == b
    case .notEqual: a != b
    case .exists, .contains: false
    }
  }
}

extension MetaField {
  fileprivate func number(in text: Span<UInt8>) -> ExactNumber { ExactNumber(text.extracting(range)) }
}
