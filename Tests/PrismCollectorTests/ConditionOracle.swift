import PrismProtocol

@testable import PrismCollector

extension MetaCondition {
  /// Whether it holds for a JSON object, by a tree of it: what the stores read from the text.
  func holds(for meta: [UInt8]) -> Bool {
    guard let root = try? JSONValue(parsing: meta) else { return false }
    let field = path.reduce(Optional(root)) { $0?[$1] }
    guard let field else { return false }
    let number = number.flatMap { Double($0) }
    func isOrdered(_ sign: (String, String) -> Bool, _ numbers: (Double, Double) -> Bool) -> Bool {
      if let number { return field.double.map { numbers($0, number) } ?? false }
      return field.string.map { sign($0, value) } ?? false
    }
    switch comparison {
    case .exists: return true
    case .contains: return field.string?.contains(value) ?? false
    case .equal: return isEqual(field)
    case .notEqual: return !isEqual(field)
    case .less: return isOrdered({ Array($0.utf8).lexicographicallyPrecedes(Array($1.utf8)) }, <)
    case .atMost: return isOrdered({ !Array($1.utf8).lexicographicallyPrecedes(Array($0.utf8)) }, <=)
    case .more: return isOrdered({ Array($1.utf8).lexicographicallyPrecedes(Array($0.utf8)) }, >)
    case .atLeast: return isOrdered({ !Array($0.utf8).lexicographicallyPrecedes(Array($1.utf8)) }, >=)
    }
  }

  private func isEqual(_ field: JSONValue) -> Bool {
    switch field {
    case .string(let text): text == value
    case .number: number.map { Double($0) == field.double } ?? false
    case .bool(let flag): value == "\(flag)"
    case .null: value == "null"
    case .array, .object: false
    }
  }
}
