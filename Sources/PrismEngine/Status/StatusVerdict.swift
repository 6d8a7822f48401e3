import PrismBase
import PrismControl
import PrismProtocol

/// The daemon's state in one sentence and a light.
struct StatusVerdict: Sendable, Equatable {
  enum Light: String, Sendable {
    case sending, waiting, held
  }

  /// The reason why rows of a namespace wait.
  struct Obstacle: Sendable, Equatable {
    var namespace: String
    var reason: String
    /// Nothing is wrong: the next packet leaves by its timer.
    var isTimer = false
  }

  let light: Light
  let sentence: String

  /// - Parameter obstacles: of namespaces with rows to send.
  init(_ status: StatusReport, _ obstacles: [Obstacle]) {
    let held = status.namespaces.filter { $0.value.isHeld }
    let failing = status.namespaces.filter { $0.value.unsentRows > 0 && $0.value.presentFailure != nil }
    let shut = obstacles.filter { !$0.isTimer }
    if !status.store.takesReports {
      light = .held
      sentence = "Held: reports are refused, because \(status.store.cause ?? "the database is \(status.store.state)")."
    } else if let first = held.first {
      light = .held
      let cause = first.value.presentFailure?.cause ?? "only an operator can get it going again"
      sentence = "Held: \(Self.names(held.map(\.name))) sends nothing, because \(cause)."
    } else if let first = failing.first, let failure = first.value.presentFailure {
      light = .waiting
      let next = first.value.nextTryInSeconds.map { ", tried again in \(Duration.seconds($0).words)" } ?? ""
      sentence = "Waiting for the collector of \(Self.names(failing.map(\.name))): \(failure.cause)\(next)."
    } else if let first = shut.first {
      light = .waiting
      sentence = "Waiting: \(Self.names(shut.map(\.namespace))) sends nothing now, because \(first.reason)."
    } else {
      light = .sending
      let rows = status.namespaces.reduce(0) { $0 + $1.value.unsentRows }
      let words = rows == 1 ? "1 row is on its way" : "\(rows) rows are on their way"
      sentence = "Sending: \(rows == 0 ? "nothing waits" : words)."
    }
  }

  private static func names(_ names: [String]) -> String {
    guard let first = names.first, names.count > 1 else { return names.first ?? "" }
    return "\(first) with \(names.count - 1) more"
  }

  /// Faults that do not stop the sending, and what to do.
  static func notes(_ status: StatusReport) -> [String] {
    var notes = status.configFaults.map { "configuration: \($0)" } + status.faults
    if status.store.state != "working", status.store.takesReports {
      notes.append("the database is \(status.store.state): \(status.store.cause ?? "no cause is known")")
    }
    let dead = status.namespaces.filter { $0.value.deadRows > 0 }
    notes += dead.map {
      "\($0.name): \($0.value.deadRows) dead letters, which the collector refused for good; `prismctl dead list --namespace "
        + "\($0.name)` tells why"
    }
    notes += status.keys.compactMap { $0.value.note(id: $0.name) }
    if !status.refused.isEmpty {
      notes.append(
        "reports refused since the start: " + status.refused.map { "\($0.value) \($0.name)" }.joined(separator: ", "))
    }
    notes += status.namespaces.filter(\.value.isPlain).map { "\($0.name) sends over plain http" }
    if let failed = status.remote?.lastFailed {
      notes.append("remote configuration was refused or taken back: \(failed.reason)")
    }
    if let cause = status.remote?.cause { notes.append("remote configuration can't be asked for: \(cause)") }
    return notes
  }
}
