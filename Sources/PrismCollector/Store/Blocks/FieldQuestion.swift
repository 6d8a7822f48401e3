import PrismPacket
import PrismProtocol

/// A question about one field of a meta. A report's own members answer it, if they have the field's first key. Otherwise the
/// members that it has in common with others answer it, once for all of them.
final class FieldQuestion<Answer> {
  private let path: [[UInt8]]
  private let absent: Answer
  private let answer: (MetaField, Span<UInt8>) -> Answer
  /// By the places of common information in the block.
  private var known: [Int: Answer] = [:]

  /// - Parameters:
  ///   - absent: the answer for a report without the field.
  ///   - answer: of the field, and the text that has it.
  init(_ path: [String], absent: Answer, _ answer: @escaping (MetaField, Span<UInt8>) -> Answer) {
    (self.path, self.absent, self.answer) = (path.map { Array($0.utf8) }, absent, answer)
  }

  /// Before the reports of another block.
  func beginBlock() { known.removeAll(keepingCapacity: true) }

  func of(_ row: OpenedPacket.Row, _ reports: ReportRows) -> Answer {
    if let answer = find(in: reports.bytes.span.extracting(row.own)) { return answer }
    guard let common = row.common else { return absent }
    if let answer = known[common] { return answer }
    let object = reports.commons[common].information.object
    let answer = find(in: object.span) ?? absent
    known[common] = answer
    return answer
  }

  /// Of a whole object.
  func of(_ object: [UInt8]) -> Answer { find(in: object.span) ?? absent }

  /// - Returns: nil: the text does not have the first key.
  private func find(in text: Span<UInt8>) -> Answer? {
    switch MetaField.find(path, in: text) {
    case .noKey: nil
    case .noField: absent
    case .field(let field): answer(field, text)
    }
  }
}

extension FieldQuestion where Answer == Bool {
  /// Whether a condition holds: the one rule for reports and records of all stores.
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
