import PrismProtocol

/// A value for each priority.
struct PriorityValues: Equatable, Sendable {
  private var crash: Int64
  private var realtime: Int64
  private var rest: Int64
  private var kept: Int64

  init(_ value: (Priority) -> Int64) {
    (crash, realtime, rest, kept) = (value(.crash), value(.realtime), value(.rest), value(.kept))
  }

  subscript(priority: Priority) -> Int64 {
    get {
      switch priority {
      case .crash: crash
      case .realtime: realtime
      case .rest: rest
      case .kept: kept
      }
    }
    set {
      switch priority {
      case .crash: crash = newValue
      case .realtime: realtime = newValue
      case .rest: rest = newValue
      case .kept: kept = newValue
      }
    }
  }

  /// The id just below a priority's first one.
  static let bases = PriorityValues { RowID(priority: $0, sequence: 0).value }
}

extension Priority {
  /// Above every id of the priority.
  var idEnd: Int64 { Int64(rawValue + 1) << RowID.sequenceBits }
}
