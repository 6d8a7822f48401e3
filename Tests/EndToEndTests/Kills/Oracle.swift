import PrismClient
import PrismProtocol
import Synchronization
import Testing

/// The answers that the clients got. It outlives every kill, and knows nothing of the daemon's or collector's files.
final class Oracle: Sendable {
  struct Account: Sendable {
    /// Ids that were answered `stored`.
    var stored: Set<String> = []
    /// Numbers that were refused, of writers that never send anything twice.
    var refused: Set<Int> = []
  }

  private struct State {
    var accounts: [String: Account] = [:]
    var storedCount = 0
    var refusals: [String: Int] = [:]
    var isOver = false
  }
  private let state = Mutex(State())

  var storedCount: Int { state.withLock { $0.storedCount } }
  /// By code: some are to be expected of a daemon that has just begun.
  var refusals: [String: Int] { state.withLock { $0.refusals } }
  var isOver: Bool { state.withLock { $0.isOver } }
  func end() { state.withLock { $0.isOver = true } }

  subscript(namespace: String) -> Account { state.withLock { $0.accounts[namespace] ?? Account() } }

  /// - Parameter numbers: of the reports that `answers` are for; nil where they may have been sent before.
  func note(_ answers: [ReportAnswer], in namespace: String, numbers: Range<Int>?) {
    state.withLock { state in
      for (index, answer) in answers.enumerated() {
        switch answer {
        case .stored(let id, _, _):
          state.accounts[namespace, default: Account()].stored.insert(id)
          state.storedCount += 1
        case .sampled: continue
        case .refused(let refusal):
          state.refusals[refusal.code.rawValue, default: 0] += 1
          if let numbers { state.accounts[namespace, default: Account()].refused.insert(numbers.lowerBound + index) }
        }
      }
    }
  }
}

extension Harness {
  /// Holds a namespace at the collector to what its clients were answered and to what the ledger says.
  func expect(_ account: Oracle.Account, _ namespace: String, _ kind: String, _ status: JSONValue) async throws {
    let rows = try await arrived(namespace, kind)
    let ids = Set(rows.map(\.reportID))
    let what = Comment(rawValue: "\(namespace) \(kind)")
    #expect(ids.count == rows.count, "\(what): no report arrived twice")
    #expect(rows.count == Self.rows(status, namespace, kind, "delivered"), "\(what): the ledger counts what arrived")
    let named = ["expired", "evicted", "cleared", "dead", "removed", "corrupt"]
      .reduce(0) { $0 + Self.rows(status, namespace, kind, $1) }
    let lost = account.stored.subtracting(ids)
    #expect(lost.count <= named, "\(what): \(lost.count) never arrived, \(named) have a named reason")
    #expect(account.refused.isDisjoint(with: rows.map(\.number)), "\(what): what was refused was not stored")
    var last: [Int: Int] = [:]
    for row in rows {
      let writer = row.number / KillTests.numbersPerWriter
      if let before = last[writer], before >= row.number { Issue.record("\(what): \(row.number) after \(before)") }
      last[writer] = row.number
      if row.textHex != Sample.textHex(row.number) { Issue.record("\(what): \(row.number) is not what was sent") }
      if kind == "payload" && row.payloadHex != Sample.payloadHex(row.number) {
        Issue.record("\(what): the payload of \(row.number) is not what was sent")
      }
    }
  }
}
