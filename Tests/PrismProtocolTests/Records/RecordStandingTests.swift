import PrismProtocol
import Testing

/// The table "States" of docs/records.md, row by row.
@Suite("Standings of records") struct RecordStandingTests {
  /// Steps from a new record to a place in the table.
  enum Step: Sendable { case put, delete, send, sendPart, confirm, refuse, release, forget }

  /// A record after steps: a word for what it is, or "gone".
  private static func after(_ steps: [Step]) -> String {
    var standing = RecordStanding()
    for (index, step) in steps.enumerated() {
      var isGone = false
      switch step {
      case .put: standing.put()
      case .delete: isGone = standing.delete()
      case .send: standing.send()
      case .sendPart: standing.send(isPartial: true)
      case .confirm: isGone = standing.confirm()
      case .refuse: isGone = standing.refuse()
      case .release: isGone = standing.release()
      case .forget: standing.forget()
      }
      if isGone { return index == steps.count - 1 ? "gone" : "gone too early" }
    }
    let flight = standing.sent.map { " (\($0.name) in flight)" } ?? ""
    return (standing.isRefused ? "refused " : "") + standing.state.name + flight + (standing.isWaiting ? ", waits" : "")
  }

  @Test(
    "a change, its operation and the answer lead to the state of the table",
    arguments: [
      ([], "insert, waits"),
      ([.put], "insert, waits"),
      ([.delete], "gone"),
      ([.send], "insert (insert in flight)"),
      ([.send, .put], "insert (insert in flight), waits"),
      ([.send, .delete], "delete (insert in flight), waits"),
      ([.send, .delete, .put], "insert (insert in flight), waits"),
      ([.send, .confirm], "clean"),
      ([.send, .put, .confirm], "update, waits"),
      ([.send, .delete, .confirm], "delete, waits"),
      ([.sendPart, .confirm], "update, waits"),
      ([.send, .confirm, .put], "update, waits"),
      ([.send, .confirm, .put, .put], "update, waits"),
      ([.send, .confirm, .put, .send], "update (update in flight)"),
      ([.send, .confirm, .put, .send, .put, .confirm], "update, waits"),
      ([.send, .confirm, .put, .send, .confirm], "clean"),
      ([.send, .confirm, .put, .delete], "delete, waits"),
      ([.send, .confirm, .delete], "delete, waits"),
      ([.send, .confirm, .delete, .put], "update, waits"),
      ([.send, .confirm, .delete, .send], "delete (delete in flight)"),
      ([.send, .confirm, .delete, .send, .confirm], "gone"),
      ([.send, .confirm, .delete, .send, .put], "insert (delete in flight), waits"),
      ([.send, .confirm, .delete, .send, .put, .delete], "delete (delete in flight)"),
      ([.send, .confirm, .delete, .send, .put, .confirm], "insert, waits"),
    ] as [([Step], String)])
  func table(steps: [Step], expected: String) { #expect(Self.after(steps) == expected) }

  @Test(
    "a refused record is not sent until it is changed; one that certainly did not leave waits again",
    arguments: [
      ([.send, .refuse], "refused insert"),
      ([.send, .refuse, .put], "insert, waits"),
      ([.send, .refuse, .delete], "gone"),
      ([.send, .put, .refuse], "insert, waits"),
      ([.send, .delete, .refuse], "gone"),
      ([.send, .confirm, .put, .send, .refuse], "refused update"),
      ([.send, .confirm, .delete, .send, .refuse], "refused delete"),
      ([.send, .confirm, .delete, .send, .refuse, .put], "update, waits"),
      ([.send, .confirm, .delete, .send, .put, .refuse], "update, waits"),
      ([.send, .release], "insert, waits"),
      ([.send, .delete, .release], "gone"),
      ([.send, .confirm, .delete, .send, .put, .release], "update, waits"),
    ] as [([Step], String)])
  func refusals(steps: [Step], expected: String) { #expect(Self.after(steps) == expected) }

  @Test(
    "where another server answers, a record is a new one, and a deletion stays one until the record is put again",
    arguments: [
      ([.send, .confirm, .forget], "insert, waits"),
      ([.send, .confirm, .put, .forget], "insert, waits"),
      ([.send, .confirm, .delete, .forget], "delete, waits"),
      ([.send, .confirm, .delete, .forget, .put], "insert, waits"),
      ([.send, .confirm, .delete, .forget, .send, .confirm], "gone"),
      ([.send, .confirm, .delete, .forget, .send, .release], "delete, waits"),
      ([.send, .confirm, .delete, .send, .forget, .put, .release], "insert, waits"),
      ([.send, .confirm, .delete, .send, .refuse, .forget, .put], "insert, waits"),
      ([.send, .confirm, .put, .send, .forget, .release], "insert, waits"),
      ([.send, .confirm, .put, .send, .forget, .put, .refuse], "insert, waits"),
      ([.send, .confirm, .put, .send, .forget, .confirm], "update, waits"),
    ] as [([Step], String)])
  func forgotten(steps: [Step], expected: String) { #expect(Self.after(steps) == expected) }

  @Test("every standing that a history of six steps leads to is read back, and no other one")
  func readBack() {
    var (reached, open) = ([RecordStanding()], [RecordStanding()])
    for _ in 0..<6 {
      open = open.flatMap { Self.successors(of: $0) }.filter { !reached.contains($0) }
      for standing in open where !reached.contains(standing) { reached.append(standing) }
    }
    for state in RecordState.allCases {
      for sent in [nil] + RecordOperation.Kind.allCases.map({ $0 as RecordOperation.Kind? }) {
        for bits in 0..<8 {
          let read = RecordStanding(
            state: state, sent: sent, isChangedSinceSent: bits & 1 != 0, isKnown: bits & 2 != 0,
            isRefused: bits & 4 != 0)
          if let read { #expect(reached.contains(read), "\(read)") }
        }
      }
    }
    for standing in reached {
      #expect(
        RecordStanding(
          state: standing.state, sent: standing.sent, isChangedSinceSent: standing.isChangedSinceSent,
          isKnown: standing.isKnown, isRefused: standing.isRefused) == standing, "\(standing)")
    }
  }

  private static func successors(of standing: RecordStanding) -> [RecordStanding] {
    var result: [RecordStanding] = []
    func add(_ step: (inout RecordStanding) -> Bool) {
      var next = standing
      if !step(&next) { result.append(next) }
    }
    add {
      $0.put()
      return false
    }
    add {
      $0.forget()
      return false
    }
    add { $0.delete() }
    add { $0.confirm() }
    add { $0.refuse() }
    add { $0.release() }
    if standing.next != nil {
      add {
        $0.send()
        return false
      }
      if standing.next == .insert {
        add {
          $0.send(isPartial: true)
          return false
        }
      }
    }
    return result
  }
}
