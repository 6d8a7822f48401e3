/// The arguments of a command, taken one by one: what is left at the end is not one of them.
struct CommandArguments {
  /// Of a condition.
  static let numbers: ClosedRange<Int64> = -1 << 62...1 << 62

  private let command: CommandName
  private var rest: [String: CommandValue]

  init(_ args: [String: CommandValue], of command: CommandName) { (self.command, rest) = (command, args) }

  mutating func text(_ key: String) throws(CommandFault) -> String? {
    guard let value = rest.removeValue(forKey: key) else { return nil }
    guard case .text(let text) = value, !text.isEmpty else {
      throw .question("\(key) must be a text that is not empty")
    }
    return text
  }

  mutating func number(_ key: String, _ range: ClosedRange<Int64>) throws(CommandFault) -> Int64? {
    guard let value = rest.removeValue(forKey: key) else { return nil }
    guard case .integer(let number) = value, range.contains(number) else {
      throw .question("\(key) must be a whole number, \(range.lowerBound) to \(range.upperBound)")
    }
    return number
  }

  /// false if it is missing.
  mutating func truth(_ key: String) throws(CommandFault) -> Bool {
    guard let value = rest.removeValue(forKey: key) else { return false }
    guard case .truth(let truth) = value else { throw .question("\(key) must be true or false") }
    return truth
  }

  /// `field`, and its one condition: `equals`, `contains`, or `from` and `to`.
  mutating func condition() throws(CommandFault) -> (field: String, condition: ReportTrigger.Condition)? {
    if case .integer(let number)? = rest["equals"] { rest["equals"] = .text(String(number)) }
    if case .truth(let truth)? = rest["equals"] { rest["equals"] = .text(String(truth)) }
    let (equals, contains, field) = (try text("equals"), try text("contains"), try text("field"))
    let (from, to) = (try number("from", Self.numbers), try number("to", Self.numbers))
    var conditions: [ReportTrigger.Condition] = []
    if let equals { conditions.append(.equals(equals)) }
    if let contains { conditions.append(.contains(contains)) }
    if from != nil || to != nil {
      let (low, high) = (from ?? Self.numbers.lowerBound, to ?? Self.numbers.upperBound)
      guard low <= high else { throw .question("from is more than to") }
      conditions.append(.range(Int(low)...Int(high)))
    }
    guard conditions.count == (field == nil ? 0 : 1) else {
      throw .question("`field` needs one condition: equals, contains, or from and to; and each needs `field`")
    }
    return field.map { ($0, conditions[0]) }
  }

  /// - Throws: for an argument that was not taken.
  func end() throws(CommandFault) {
    if let other = rest.keys.min() { throw .question("\(command.rawValue) takes no argument \(other)") }
  }
}

extension CommandRequest {
  /// The arguments of `erase`. - Returns: nil: all reports of the namespace.
  package func erased() throws(CommandFault) -> MetaCondition? {
    var rest = CommandArguments(args, of: .erase)
    let (text, isAll) = (try rest.text("where"), try rest.truth("all"))
    try rest.end()
    guard (text == nil) == isAll else { throw .question("erase needs the argument where, FIELD=VALUE, or all, true") }
    do throws(MetaCondition.Fault) {
      return try text.map { (text) throws(MetaCondition.Fault) in try MetaCondition(erasing: text) }
    } catch { throw .question("where \(error.reason)") }
  }
}
