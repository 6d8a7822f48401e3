import PrismBase
import PrismConfig
import PrismProtocol
import Synchronization

/// Types that reports came with and that a pattern of the monitor list means. Each is known from its first report on, until the
/// rules change.
final class PatternTypes: Sendable {
  struct Entry: Sendable {
    let rowType: ReportBatch.RowType
    /// Index in the monitor list.
    let entry: Int
  }

  private struct State {
    var types: [Entry] = []
    /// That each user brought.
    var counts: [UInt32: Int] = [:]
    var indexByType: [String: Int] = [:]

    func hasRoom(_ userID: UInt32) -> Bool {
      let taken = types.count - (indexByType[ReportType.other.text] == nil ? 0 : 1)
      return SharedPlaces(most: PatternTypes.typesMax).hasRoom(taken: taken) { counts[userID] ?? 0 }
    }
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

  func hasRoom(for userID: UInt32) -> Bool { state.withLock { $0.hasRoom(userID) } }

  subscript(index: Int) -> Entry? { state.withLock { $0.types.indices.contains(index) ? $0.types[index] : nil } }

  /// nil: no pattern means it, it is no type's name, or it is one too many. - Parameter userID: that it came from.
  func index(of text: String, from userID: UInt32) -> Int? {
    if let known = state.withLock({ $0.indexByType[text] }) { return known }
    guard let type = ReportType(text), let entry = list.entry(for: type),
      let place = list.firstIndex(where: { $0.type == entry.type })
    else { return nil }
    return state.withLock { state in
      if let known = state.indexByType[text] { return known }
      guard type == .other || state.hasRoom(userID) else { return nil }
      state.counts[userID, default: 0] += 1
      state.types.append(Entry(rowType: ReportBatch.RowType(type, entry), entry: place))
      state.indexByType[text] = state.types.count - 1
      return state.types.count - 1
    }
  }
}

extension ReportBatch.RowType {
  /// - Parameter entry: the one of the monitor list that means it.
  init(_ type: ReportType, _ entry: MonitoredType) {
    let priority: Priority =
      type == .appCrash ? .crash : entry.keep != .queue ? .kept : entry.isRealtime ? .realtime : .rest
    self.init(
      type: type, priority: priority, isRealtime: entry.isRealtime,
      isInMemory: priority == .kept && entry.keep == .memory)
  }
}

/// Finds the known types that look most like a name, for the refusal of an unknown type. Its time is linear in the lengths of
/// the names, because any client can cause it. Pure.
struct NearTypes {
  /// Types that are compared, and types that are named.
  static let comparedMax = 32, namedMax = 3
  /// Bytes of a name that are compared.
  private static let bytesMax = 64

  private let types: [(text: String, folded: [UInt8])]
  /// Of the file that lists the types.
  private let path: String

  init(_ types: [String], path: String) {
    self.path = path
    self.types = types.prefix(Self.comparedMax).map { ($0, Self.folded($0)) }
  }

  /// The types that are meant, perhaps, and how to add this one.
  func advice(on name: String) -> String {
    let known = nearest(to: name).joined(separator: ", ") + (types.count > Self.namedMax ? ", …" : "")
    return "known are \(known)" + (ReportType(name).map { "; add {type: \($0)} to it in \(path)" } ?? "")
  }

  /// The nearest first.
  func nearest(to name: String) -> [String] {
    let wanted = Self.folded(name)
    let scored = types.map { (text: $0.text, score: Self.score(wanted, $0.folded)) }.enumerated()
    let sorted = scored.sorted { ($1.element.score, $0.offset) < ($0.element.score, $1.offset) }
    return sorted.prefix(Self.namedMax).map(\.element.text)
  }

  /// Equal bytes at both ends, less what differs.
  private static func score(_ a: [UInt8], _ b: [UInt8]) -> Int {
    let shorter = min(a.count, b.count)
    var (front, back) = (0, 0)
    while front < shorter, a[front] == b[front] { front += 1 }
    while back < shorter - front, a[a.count - 1 - back] == b[b.count - 1 - back] { back += 1 }
    return 2 * (front + back) - max(a.count, b.count)
  }

  /// Upper and lower case are equal.
  private static func folded(_ name: String) -> [UInt8] {
    name.utf8.prefix(bytesMax).map { UInt8(ascii: "A")...UInt8(ascii: "Z") ~= $0 ? $0 | UInt8(ascii: " ") : $0 }
  }
}
