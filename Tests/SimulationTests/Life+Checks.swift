import PrismConfig
import PrismProtocol
import PrismSQLite
import PrismTestSupport

@testable import PrismEngine
@testable import PrismStore

extension Life {
  static let lines = LifeSettings.names.flatMap { name in RowKind.reports.map { Line(namespace: name, kind: $0) } }

  func queues() throws -> [Line: QueueStatus] {
    let store = incarnation.store
    let status = stage.perform { () -> [NamespaceName: [RowKind: QueueStatus]]? in
      do { return try await store.status() } catch { return nil }
    }
    guard let status else { throw Broken(description: "the store gives no status") }
    var queues: [Line: QueueStatus] = [:]
    for (name, kinds) in status {
      for (kind, queue) in kinds { queues[Line(namespace: name, kind: kind)] = queue }
    }
    return queues
  }

  func ledgers() throws -> [Line: Ledger] {
    let store = incarnation.store
    return stage.perform { await store.ledgers }
  }

  /// After every step.
  func check() throws {
    if let broken { throw broken }
    for (line, ledger) in try ledgers() {
      guard ledger.isBalanced else { throw Broken(description: "the ledger of \(line) doesn't balance: \(ledger)") }
      guard ledger.stored == oracle.stored[line] ?? 0 || !oracle.unanswered.isEmpty else {
        throw Broken(description: "\(line): stored \(ledger.stored), answered \(oracle.stored[line] ?? 0)")
      }
      guard ledger[.delivered] <= collector.appliedCount(line) else {
        throw Broken(
          description: "\(line): \(ledger[.delivered]) delivered, \(collector.appliedCount(line)) at the collector")
      }
      guard Ledger.Account.allCases.allSatisfy({ ledger[$0] >= 0 }), ledger[.corrupt] == 0 else {
        throw Broken(description: "\(line): \(ledger)")
      }
    }
  }

  /// Compares the rows of the file with the ledger in it.
  func checkFile() throws {
    let connection = try SQLiteConnection(.init(path: incarnation.folder + "/prism.db", isReadOnly: true))
    func number(_ sql: String) throws -> Int { Int(try connection.firstInt(sql) ?? 0) }
    for (line, queue) in try queues() {
      let name = "'\(line.namespace)'"
      let numberInFile = try number("SELECT number FROM namespaces WHERE name = \(name)")
      let kind = line.kind == .meta ? 0 : 1
      // Without delivered rows, which stay in their table for a while.
      let held = "v_\(line.kind == .meta ? "meta" : "payload") WHERE namespace = \(name)"
      let ledger = queue.ledger
      let rows = try number("SELECT count(*) FROM \(held)")
      let isKind = "namespace = \(numberInFile) AND kind = \(kind)"
      let dead = try number("SELECT count(*) FROM dead WHERE \(isKind)")
      let bytes = try number(
        "SELECT (SELECT total(size) FROM \(held)) + (SELECT total(size) FROM dead WHERE \(isKind))")
      let claimed = try number(
        """
        SELECT total(json_extract(p.members, '$[' || (m.key + 1) || ']') - m.value + 1)
        FROM packets p, json_each(p.members) m WHERE m.key % 2 = 0 AND \(isKind)
        """)
      guard rows == ledger[.waiting] + ledger[.claimed], dead == ledger[.dead], claimed == ledger[.claimed],
        bytes == queue.bytes
      else {
        throw Broken(description: "\(line): \(rows) rows, \(claimed) claimed, \(dead) dead, \(bytes) bytes; \(queue)")
      }
    }
  }

  /// All faults are over, and there was time: nothing waits, and what was stored is at the collector or has a name.
  func checkNothingIsLeft() throws {
    try checkFile()
    for (line, ledger) in try ledgers() {
      guard ledger[.waiting] == 0, ledger[.claimed] == 0 else {
        throw Broken(description: "\(line) is not empty, though nothing keeps it: \(ledger); \(explained(line))")
      }
      let named: [Ledger.Account] = [.expired, .evicted, .cleared, .dead, .removed, .corrupt]
      let lost = ledger.stored - collector.appliedCount(line)
      guard lost == named.reduce(0, { $0 + ledger[$1] }) else {
        throw Broken(description: "\(line): \(lost) reports are not at the collector; \(ledger)")
      }
    }
    try checkDeadLetters()
  }

  /// The engine's explanation for each type.
  private func explained(_ line: Line) -> String {
    let (engine, types) = (engine, settings[line.namespace].monitorList.map(\.type))
    return stage.perform {
      var words: [String] = []
      for type in types {
        let gate = await engine.pipelines[line.namespace]?.explain(line.kind, type)
        words.append("\(type): \(gate.map { "\($0.gate)" } ?? "open")")
      }
      return words.joined(separator: ", ")
    }
  }

  /// Only reports that were refused alone become dead letters.
  private func checkDeadLetters() throws {
    for letter in try deadLetters() {
      guard collector.refusedAlone[letter.reportID] != nil else {
        throw Broken(description: "\(letter.reportID) is a dead letter, and was never refused")
      }
    }
  }

  func deadLetters() throws -> [DeadLetter] {
    let store = incarnation.store
    let letters = stage.perform { () -> [DeadLetter]? in
      do { return try await store.deadLetters(of: nil, after: 0, limit: 100_000) } catch { return nil }
    }
    guard let letters else { throw Broken(description: "the store lists no dead letters") }
    return letters
  }
}

extension ReportStore {
  fileprivate var ledgers: [SimulatedCollector.Line: Ledger] {
    var ledgers: [SimulatedCollector.Line: Ledger] = [:]
    for (number, name) in state.names.namespaces {
      for kind in RowKind.reports {
        ledgers[.init(namespace: name, kind: kind)] = state[QueueID(namespace: number, kind: kind)].ledger
      }
    }
    return ledgers
  }
}
