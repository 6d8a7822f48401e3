import PrismProtocol
import PrismStore

/// A table of the server in a fault run: it is taken whole again and again, and operations change a few of its records in
/// one transaction. Each of both is a generation, whose number its records hold.
struct DownWork {
  private static let table = RecordTable(
    RecordTableName("price")!, direction: .down, scope: .fleet, maxRecord: 1000)
  /// Records of the table, and those that operations change.
  private static let (count, changedCount) = (40, 3)
  private static var target: DownTarget { DownTarget(table, of: Reports.namespace, tables: [table]) }

  /// The newest generation that was begun, and the newest one that was answered as executed.
  private(set) var (begun, executed) = (0, 0)
  /// The newest whole table that was answered as taken.
  private(set) var taken = 0

  /// One round. - Parameter onProgress: called before something may change, and after it was answered.
  mutating func step(_ store: ReportStore, round: Int, onProgress: (DownWork) -> Void) async {
    if round % 6 == 1 { await take(store, onProgress) } else if round % 2 == 0 { await change(store, onProgress) }
  }

  private mutating func take(_ store: ReportStore, _ onProgress: (DownWork) -> Void) async {
    begun += 1
    onProgress(self)
    guard let aside = try? await store.beginTable(Self.target) else { return }
    for start in stride(from: 0, to: Self.count, by: 10) {
      let records = (start..<start + 10).map { number in
        DownRecord(id: Self.id(number), localID: nil, fields: fields, time: 0)
      }
      guard let isTaken = try? await store.add(records, sequence: sequence, to: aside), isTaken else { return }
    }
    let outcome = try? await store.finishTable(aside, Self.target, sequence: sequence)
    guard outcome?.end == .done else { return }
    (executed, taken) = (begun, begun)
    onProgress(self)
  }

  private mutating func change(_ store: ReportStore, _ onProgress: (DownWork) -> Void) async {
    guard let after = await Self.cursor(store) else { return }
    begun += 1
    onProgress(self)
    let operations = (0..<Self.changedCount).map { number in
      DownOperation(
        sequence: sequence - Int64(Self.changedCount - 1 - number), op: "o\(begun).\(number)", table: Self.table.name,
        id: Self.id(number), localID: nil, kind: .update, fields: fields, dependsOn: nil, time: 0)
    }
    let page = DownPage(operations: operations, after: after, sequence: sequence, othersThrough: .max)
    guard let outcome = try? await store.apply(page, to: Self.target), outcome.end == .done else { return }
    executed = begun
    onProgress(self)
  }

  private static func id(_ number: Int) -> RecordID { RecordID("s\(number)")! }
  private static func cursor(_ store: ReportStore) async -> Int64? {
    await store.records.standing(of: table.name, in: Reports.namespace)?.after
  }
  private var fields: [UInt8] { JSONValue.object([.init("generation", .int(begun))]).bytes }
  private var sequence: Int64 { Int64(begun) * 10 }

  /// The fault of the table in `store`; nil: it is one whole generation with the operations of one behind it.
  func loss(in store: ReportStore) async throws -> String? {
    var batch = Reports.batch(0..<0)
    batch.record = RecordRequest(
      namespace: Reports.namespace, table: Self.table, action: .list(after: nil, limit: 1000), bytes: 100)
    guard case .committed(let outcomes) = await store.append([batch]),
      case .list(let records, _, false)? = outcomes.first?.record?.answer
    else { return "the table can't be listed" }
    let generations = try Dictionary(
      uniqueKeysWithValues: records.map { ($0.id, try JSONValue(parsing: $0.fields)["generation"]?.int ?? -1) })
    if records.isEmpty && taken == 0 { return nil }
    let changed = Set((0..<Self.changedCount).map { generations[Self.id($0)] ?? -1 })
    let whole = Set((Self.changedCount..<Self.count).map { generations[Self.id($0)] ?? -1 })
    let cursor = await Self.cursor(store)
    guard records.count == Self.count, changed.count == 1, whole.count == 1, let newest = changed.first,
      let oldest = whole.first, (taken...newest).contains(oldest), (executed...begun).contains(newest),
      cursor == Int64(newest) * 10
    else {
      return "\(records.count) records of the generations \(whole) and \(changed) at \(cursor ?? -1); "
        + "\(taken) was taken, \(executed) executed, \(begun) begun"
    }
    return nil
  }
}
