import PrismBase
import PrismConfig
import PrismPacket
import PrismProtocol
import PrismSQL

/// Deletes reports that are past the days of their rule (docs/collector.md, "Retention"), some blocks a step.
///
/// Each rule walks through the blocks once, in the order of their ids. It notes how far it is in the transaction that changes them, so
/// that it goes on after a kill. A list that changed begins at the first block.
struct RuledRetention: Sendable {
  let rules: [CollectorConfiguration.RetentionRule]
  /// Deleted reports of the walk that is not in the log yet.
  private var deleted = 0

  init(rules: [CollectorConfiguration.RetentionRule]) { self.rules = rules }

  struct Days {
    /// Ascending.
    let numbers: [Int64]
    let today: Int64
    /// The first report that came after a day; nil: there is no such report.
    let firstReport: (_ day: Int64) throws -> Int64?
    /// Seconds of service.
    let served: Int64
    /// No report has this id yet, or one above it.
    let end: Int64
    /// Reports from this id on are not deleted: an output has not taken them; nil: no output waits.
    let held: Int64?
    /// `retentionDay`; nil: all reports are kept.
    let keptDays: Int?
  }

  /// The next blocks of a rule: those that have ids behind `after` and before `end`.
  struct Work: Sendable {
    let rule: Int
    let after: Int64, end: Int64
  }

  /// The result of a step.
  struct Found: Sendable {
    let work: Work
    /// The walk is over up to this id.
    let through: Int64
    /// nil: no report goes.
    let erasure: BlockErasure?
  }

  /// The next work; nil: nothing is due.
  func work(in days: Days, _ statements: SQLStatements) throws -> Work? {
    for (place, rule) in rules.enumerated() {
      let over = days.numbers.filter { $0 < days.today - Int64(rule.days) }
      let due = try statements.due(
        "retention \(rule.namespace) \(rule.type)", of: over, keptDays: Int64(rule.days),
        keptBefore: Int64(days.keptDays ?? 0), served: days.served)
      guard due >= 0, over.contains(where: { $0 <= due }) else { continue }
      let end = min(try days.firstReport(due) ?? days.end, days.end, days.held ?? .max)
      let after = try statements.fact(fact(of: place)) ?? 0
      if after + 1 < end { return Work(rule: place, after: after, end: end) }
    }
    return nil
  }

  /// Names how far a rule is.
  private func fact(of place: Int) -> String { "\(listFacts)\(place)" }

  private static let facts = "retained "
  private var listFacts: String {
    let list = rules.map { "\($0.namespace) \($0.type)" }.joined(separator: "\n")
    return "\(Self.facts)\(Checksum.of(Array(list.utf8))) "
  }

  /// Carries out a step. - Returns: how many reports it deleted.
  func carryOut(_ found: Found, _ tables: StoreTables) throws -> Int {
    if let erasure = found.erasure, try !tables.erase(erasure) { return 0 }  // merged meanwhile: it is looked at again
    if found.work.after == 0 {
      // Those of a former list.
      try tables.statements.run(
        "DELETE FROM facts WHERE name LIKE '\(Self.facts)%' AND name NOT LIKE '\(listFacts)%'")
    }
    try tables.statements.set(fact(of: found.work.rule), found.through)
    return found.erasure?.erased.count ?? 0
  }

  /// Counts the reports that a step deleted, and logs them at the end of its walk.
  mutating func note(_ reports: Int, of found: Found, to log: Logger) {
    deleted += reports
    guard found.through + 1 == found.work.end, deleted > 0 else { return }
    let rule = rules[found.work.rule]
    log.info(
      "reports past the days of a rule of retention were deleted",
      ["namespace": rule.namespace, "type": rule.type, "day": String(rule.days), "reports": String(deleted)])
    deleted = 0
  }

  /// All walks begin again: older reports were brought over.
  static func forget(_ statements: SQLStatements) throws {
    try statements.run("DELETE FROM facts WHERE name LIKE '\(facts)%'")
  }

  // MARK: Reports of a rule

  private func rule(of type: TypeName) -> Int? {
    rules.firstIndex { $0.means(namespace: type.namespace, type: type.type) }
  }

  fileprivate func mayHave(_ work: Work, _ head: BlockHead) -> Bool {
    head.types.map { BlockCounts.types([$0]).contains { rule(of: $0) == work.rule } } ?? true
  }

  fileprivate func ids(_ work: Work, in block: OpenedBlock) -> [Int64] {
    var (known, ids, row): ([TypeName: Bool], [Int64], Int) = ([:], [], 0)
    var last: (bytes: ArraySlice<UInt8>, namespace: NamespaceName, isWanted: Bool)?
    for run in block.block.runs {
      for (place, id) in run.ids.enumerated() {
        let bytes = block.reports.bytes[block.reports.rows[row + place].type]
        if last?.bytes != bytes || last?.namespace != run.stream.namespace {
          let name = TypeName(namespace: run.stream.namespace.text, type: String(decoding: bytes, as: UTF8.self))
          let isWanted = known[name] ?? (rule(of: name) == work.rule)
          known[name] = isWanted
          last = (bytes, run.stream.namespace, isWanted)
        }
        if last?.isWanted == true, id < work.end { ids.append(id) }
      }
      row += run.count
    }
    return ids
  }
}

extension BlockReader {
  /// The next step of a rule: up to the first block that has reports of it.
  func next(_ work: RuledRetention.Work, of retention: RuledRetention, in tables: StoreTables) throws
    -> RuledRetention.Found
  {
    let heads = try tables.heads(
      work.after + 1...work.end - 1, isNewestFirst: false, limit: Self.headsPerStep)
    for head in heads where retention.mayHave(work, head) {
      // A damaged one stays as it is.
      guard let block = try open(head, of: tables),
        let erasure = try BlockErasure(of: retention.ids(work, in: block), in: block, head)
      else { continue }
      return .init(work: work, through: min(head.last, work.end - 1), erasure: erasure)
    }
    let last = heads.count < Self.headsPerStep ? nil : heads.last?.last
    return .init(work: work, through: min(last ?? .max, work.end - 1), erasure: nil)
  }
}
