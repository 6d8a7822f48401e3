import PrismProtocol

/// A value for each priority.
struct PriorityValues: Sendable {
  private var values: [4 of Int64]

  init(_ value: (Priority) -> Int64) { values = .init { value(Priority.allCases[$0]) } }

  subscript(priority: Priority) -> Int64 {
    get { values[priority.rawValue] }
    set { values[priority.rawValue] = newValue }
  }

  /// The id just below a priority's first one.
  static let bases = PriorityValues { RowID(priority: $0, sequence: 0).value }
}

extension Priority {
  /// Above every id of the priority.
  var idEnd: Int64 { Int64(rawValue + 1) << RowID.sequenceBits }
}
