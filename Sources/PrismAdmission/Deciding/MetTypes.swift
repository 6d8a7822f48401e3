import PrismConfig
import PrismProtocol
import Synchronization

/// Types that reports came with and that a pattern of the monitor list means. Each is known from its first report on, until the
/// rules change.
final class MetTypes: Sendable {
  struct Met: Sendable {
    let rowType: ReportBatch.RowType
    /// Index in the monitor list.
    let entry: Int
  }

  private struct State {
    var types: [Met] = []
    var indexByType: [String: Int] = [:]
  }

  /// A client can make up types: each is remembered here, and in the database for good. `other` is taken beside them.
  static let typesMax = 1000

  private let list: [MonitoredType]
  private let state = Mutex(State())

  /// nil if the list has no pattern.
  init?(_ list: [MonitoredType]) {
    guard list.contains(where: { $0.type.isPattern }) else { return nil }
    self.list = list
  }

  var isFull: Bool { state.withLock { $0.types.count >= Self.typesMax } }

  subscript(index: Int) -> Met? { state.withLock { $0.types.indices.contains(index) ? $0.types[index] : nil } }

  /// nil: no pattern means it, it is no type's name, or it is one too many.
  func index(of text: String) -> Int? {
    if let known = state.withLock({ $0.indexByType[text] }) { return known }
    guard let type = ReportType(text), let entry = list.entry(for: type),
      let place = list.firstIndex(where: { $0.type == entry.type })
    else { return nil }
    return state.withLock { state in
      if let known = state.indexByType[text] { return known }
      let others = state.indexByType[ReportType.other.text] == nil ? 0 : 1
      guard type == .other || state.types.count - others < Self.typesMax else { return nil }
      state.types.append(Met(rowType: ReportBatch.RowType(type, entry), entry: place))
      state.indexByType[text] = state.types.count - 1
      return state.types.count - 1
    }
  }
}

extension ReportBatch.RowType {
  /// - Parameter entry: the one of the monitor list that means it.
  init(_ type: ReportType, _ entry: MonitoredType) {
    let priority: Priority =
      type == .appCrash ? .crash : entry.keep == .ring ? .kept : entry.isRealtime ? .realtime : .rest
    self.init(type: type, priority: priority, isRealtime: entry.isRealtime)
  }
}
