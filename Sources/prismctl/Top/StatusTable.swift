import PrismBase
import PrismControl
import PrismProtocol

/// `prismctl status` for people: stored rows, the state of delivery, and faults.
struct StatusTable {
  let text: String

  /// More namespaces than these are folded if they are quiet.
  private static let unfoldedMax = 4

  /// - Parameter columns: of the terminal; nil without a terminal, so that no name is cut and no line broken.
  /// - Parameter isWhole: quiet namespaces too, and the whole ledger of each.
  init(_ status: StatusReport, columns: Int?, isWhole: Bool = false, paint: Paint = .ofOutput) {
    let all = Array(status.namespaces)
    let isFolded = !isWhole && columns != nil && all.count > Self.unfoldedMax
    let namespaces = isFolded ? all.filter { !Self.isQuiet($0.value) } : all
    let longest = namespaces.map(\.name.count).max() ?? 0
    let width = max(16, min(longest + 1, columns.map { $0 - Self.queueWidth } ?? .max))
    var tables: [String] = []
    if !namespaces.isEmpty {
      tables += ["", Self.row("NAMESPACE", "KIND", Self.queueTitles, Self.queueWidths, width)]
      tables += namespaces.flatMap { Self.queues($0.name, $0.value, width) }
      tables += ["", Self.row("NAMESPACE", "STATE", Self.deliveryTitles, Self.deliveryWidths, width)]
      tables += namespaces.map { Self.delivery($0.name, $0.value, width) }
    }
    let quiet = "namespace".counted(all.count - namespaces.count)
    if isFolded, all.count > namespaces.count { tables += ["", "\(quiet) with nothing to tell; --all shows all"] }
    let faults: [String] =
      status.configFaults.map { "configuration: \($0)" } + status.faults + Self.storeNotes(status.store)
    let keys: [String] = status.keys.compactMap { $0.value.note(id: $0.name) } + Self.countNotes(status)
    let notes: [String] = namespaces.flatMap { Self.notes($0.name, $0.value) } + Self.deadNotes(status.namespaces)
    let ledgers = namespaces.flatMap {
      isWhole ? Self.ledgers($0.name, $0.value) : Self.losses($0.name, $0.value)
    }
    func lines(_ notes: [(String, Paint.Colour?)]) -> [String] {
      notes.isEmpty ? [] : [""] + notes.flatMap { note in note.0.wrapped(columns).map { paint($0, note.1) } }
    }
    let warnings: [(String, Paint.Colour?)] = (keys + notes).map { ($0, .yellow) }
    let head = lines(faults.map { ($0, .red) } + warnings + Self.remoteNotes(status.remote))
    let tail = lines(ledgers.map { ($0, nil) })
    let first = status.nextStep.map { $0.wrapped(columns).map { paint($0, .yellow) } + [""] } ?? []
    text = (first + Self.daemonLines(status) + head + tables + tail).joined(separator: "\n")
  }

  /// Nothing is to be sent, and nothing needs an operator.
  private static func isQuiet(_ namespace: NamespaceReport) -> Bool {
    namespace.unsentRows == 0 && namespace.deadRows == 0 && notes("", namespace).isEmpty
  }

  static func daemonLines(_ status: StatusReport) -> [String] {
    let interface = status.network.interface.map { " (\($0))" } ?? ""
    let lines = [
      [
        "prismd \(status.version.isEmpty ? "?" : status.version)", "up \(Duration.seconds(status.uptimeSeconds).words)",
        "configuration \(status.generation)",
      ],
      [
        "store \(bytes(status.storeBytes))", "memory \(bytes(status.memory.residentBytes))",
        "network \(status.network.kind)\(interface)",
      ],
    ]
    return lines.map { $0.joined(separator: ", ") }
  }

  /// The refusals and repetitions since the start; empty if every report was taken, and came once.
  private static func countNotes(_ status: StatusReport) -> [String] {
    let counts = status.refused.map { "\($0.value) \($0.name)" }.joined(separator: ", ")
    let refused = "reports refused since the start: \(counts); `prismctl tail --refused` shows new ones"
    let repeated = "reports that came again since the start, and are stored once: \(status.repeated)"
    return (counts.isEmpty ? [] : [refused]) + (status.repeated > 0 ? [repeated] : [])
  }

  /// One line of all dead letters; empty if there are no such rows.
  private static func deadNotes(_ namespaces: NamedValues<NamespaceReport>) -> [String] {
    let counts = namespaces.filter { $0.value.deadRows > 0 }.map { "\($0.value.deadRows) of \($0.name)" }
    return counts.isEmpty ? [] : ["dead letters: \(counts.joined(separator: ", ")); `prismctl dead list` tells why"]
  }

  /// Nothing while remote configuration is off.
  private static func remoteNotes(_ remote: RemoteReport?) -> [(String, Paint.Colour?)] {
    guard let remote else { return [] }
    let number = remote.lastApplied.map { "\($0.number) in force" } ?? "nothing in force"
    let wait = remote.nextAskInSeconds.map { ", asked again in \(Duration.seconds($0).words)" } ?? ", \(remote.state)"
    var notes: [(String, Paint.Colour?)] = [
      ("remote configuration: \(number), of \("namespace".counted(remote.namespaces.count))\(wait)", nil)
    ]
    if !remote.probation.isEmpty {
      let names = remote.probation.map(\.name).joined(separator: ", ")
      notes.append(("remote configuration on probation: \(names)", nil))
    }
    if let cause = remote.cause { notes.append(("remote configuration can't be asked for: \(cause)", .yellow)) }
    if remote.isStale, let until = remote.validUntil {
      let why = "answers are held back, or a clock is wrong"
      notes.append(("remote configuration: the last signed answer expired at \(until); \(why)", .yellow))
    }
    if let failed = remote.lastFailed {
      let number = failed.number.map { "\($0)" } ?? "an answer"
      notes.append(("remote configuration: \(number) was refused or taken back: \(failed.reason)", .red))
    }
    return notes
  }

  // MARK: What is stored

  private static let queueTitles = ["WAITING", "CLAIMED", "DEAD", "BYTES", "OLDEST", "DELIVERED"]
  private static let queueWidths = [9, 9, 7, 9, 9, 11]
  private static let kindWidth = 8
  private static var queueWidth: Int { kindWidth + queueWidths.reduce(0, +) }

  private static func row(
    _ name: String, _ kind: String, _ figures: [String], _ widths: [Int], _ width: Int
  ) -> String {
    name.fitted(width) + kind.padded(kindWidth) + zip(figures, widths).map { $0.paddedLeft($1) }.joined()
  }

  private static func queues(_ name: String, _ namespace: NamespaceReport, _ width: Int) -> [String] {
    RowKind.reports.map { kind in
      let queue = namespace[kind]
      let figures = [
        String(queue.waiting), String(queue.claimed), String(queue.dead), bytes(queue.bytes),
        duration(queue.oldestAgeSeconds), String(queue.ledger[.delivered]),
      ]
      return row(name, kind.name, figures, queueWidths, width)
    }
  }

  // MARK: The state of delivery

  private static let deliveryTitles = ["CIRCUIT", "LAST SUCCESS", "NEXT TRY", "METERED FLOW"]
  private static let deliveryWidths = [9, 22, 9, 14]

  private static func delivery(_ name: String, _ namespace: NamespaceReport, _ width: Int) -> String {
    let figures = [
      namespace.circuit, namespace.lastSuccess.map { $0.prefix(19) + "Z" } ?? "-",
      namespace.nextTryInSeconds.map { "in " + duration($0) } ?? "-",
      "\(bytes(namespace.flow.usedBytes)) of \(bytes(namespace.flow.allowedBytes))",
    ]
    return row(name, namespace.state, figures, deliveryWidths, width)
  }

  /// The rows that are kept and those that were overwritten, and the triggers; empty without them.
  static func rings(_ name: String, _ namespace: NamespaceReport) -> [String] {
    func sum(_ figure: (QueueReport) -> Int) -> Int { figure(namespace.meta) + figure(namespace.payload) }
    let (kept, overwritten) = (sum { $0.ledger[.kept] }, sum { $0.ledger[.overwritten] })
    let ring =
      "\(name): ring: \(kept) rows kept, \(bytes(namespace.meta.keptBytes + namespace.payload.keptBytes))"
      + (overwritten > 0 ? ", \(overwritten) overwritten" : "")
    let (inMemory, lost) = (sum(\.memoryRows), sum(\.memoryLost))
    let memory =
      "\(name): in memory: \(inMemory) of these rows, \(bytes(sum(\.memoryBytes)))"
      + (lost > 0 ? ", \(lost) lost with the power" : "")
    let triggers = namespace.triggers.map { trigger in
      let (state, over) = (trigger.value, trigger.value.overBudget)
      return
        "\(name): trigger \(trigger.name): fired \("time".counted(state.fired)), \("row".counted(state.rows)) let go"
        + (over > 0 ? ", \(over) times over its budget" : "") + (state.tooSoon > 0 ? ", \(state.tooSoon) too soon" : "")
        + (state.declined > 0 ? ", \(state.declined) times other devices had sent enough" : "")
    }
    return (kept > 0 || overwritten > 0 ? [ring] : []) + (inMemory > 0 || lost > 0 ? [memory] : []) + triggers
  }

  /// The rows that left without a delivery; empty if there are no such rows.
  private static func losses(_ name: String, _ namespace: NamespaceReport) -> [String] {
    let accounts: [Ledger.Account] = [.expired, .evicted, .cleared, .removed, .corrupt]
    let expiry = namespace.lastExpiry.map {
      "\(name): last expired at \($0.time): \($0.rows) rows, held for up to \($0.heldHours) h"
    }
    let sessions = namespace.sessions.flatMap { hour in
      let over = hour.leftOut > 0 ? ", \(hour.leftOut) left out: too many apps" : ""
      return hour.apps + hour.leftOut == 0
        ? nil
        : "\(name): this hour: sessions \(hour.sessions), app versions \(hour.apps), crashes \(hour.crashes)\(over)"
    }
    return [expiry, sessions].compactMap { $0 } + rings(name, namespace)
      + RowKind.reports.compactMap { kind in
        let ledger = namespace[kind].ledger
        let counts = accounts.filter { ledger[$0] > 0 }.map { "\(ledger[$0]) \($0.rawValue)" }
        return counts.isEmpty ? nil : "\(name): \(kind.name) rows not delivered: \(counts.joined(separator: ", "))"
      }
  }

  /// Where every row went: the sum of the parts is what was stored.
  private static func ledgers(_ name: String, _ namespace: NamespaceReport) -> [String] {
    let records = namespace.records.map { table in
      let parts = table.value.parts.map { "\($0.count) \($0.word)" }.joined(separator: " + ")
      let age = table.value.ageSeconds.map { ", in step with the server \($0) s ago" } ?? ""
      let changes = table.value.put == 0 ? "" : "; changes: \(table.value.put) put = \(parts)"
      let kept = table.value.kept == 0 ? "" : "; \(table.value.kept) kept that the server's store lacks"
      let fault = kept + (table.value.fault.map { "; \($0)" } ?? "")
      return "\(name): records \(table.name): \(table.value.records) held\(age)\(changes)\(fault)"
    }
    return rowLedgers(name, namespace) + records
  }

  private static func rowLedgers(_ name: String, _ namespace: NamespaceReport) -> [String] {
    RowKind.reports.compactMap { kind in
      let ledger = namespace[kind].ledger
      guard ledger.stored > 0 else { return nil }
      let parts = Ledger.Account.allCases.filter { ledger[$0] > 0 }.map { "\(ledger[$0]) \($0.rawValue)" }
      return "\(name): \(kind.name) rows: \(ledger.stored) stored = \(parts.joined(separator: " + "))"
    }
  }

  /// Faults of the store, now or since the daemon's start.
  static func storeNotes(_ store: StoreReport) -> [String] {
    var notes: [String] = []
    if store.state != "working" { notes.append("\(store.state) since \(store.since)") }
    if !store.takesReports { notes.append("reports are refused") }
    if store.setAside > 0, store.isNews {
      notes.append(
        "\(store.setAside) damaged set aside, \(store.salvagedRows) rows saved, \(store.lostRows) lost; `prismctl ack` hides this"
      )
    }
    for namespace in store.awaited {
      let count = namespace.value.reduce(0) { $0 + $1.value }
      let rows = count > 0 ? "\(count) older" : "its older"
      notes.append("\(namespace.name) sends nothing until \(rows) rows are brought over")
    }
    if !store.leftBehind.isEmpty {
      let files = store.leftBehind.joined(separator: ", ")
      notes.append("reports that could not be brought over are in \(files); delete it when you have looked")
    }
    guard !notes.isEmpty else { return [] }
    return ["store: \((notes + [store.cause].compactMap { $0 }).joined(separator: "; "))"]
  }

  /// Facts about a namespace beyond its figures that need an operator; empty if all is well.
  static func notes(_ name: String, _ namespace: NamespaceReport) -> [String] {
    var notes: [String] = []
    if namespace.state != "active" { notes.append(namespace.state) }
    if namespace.circuit != "closed" { notes.append("circuit \(namespace.circuit)") }
    if namespace.isFileGone { notes.append("its file is gone; it stays as it was") }
    if namespace.isPlain { notes.append("sends over plain http (allowPlain)") }
    // A delivery since then ends the worry.
    if let failure = namespace.presentFailure { notes.append("last failure \(failure.time): \(failure.cause)") }
    if let wait = namespace.nextTryInSeconds, !notes.isEmpty {
      notes.append("next try in \(Duration.seconds(wait).words)")
    }
    return notes.isEmpty ? [] : ["\(name): \(notes.joined(separator: "; "))"]
  }

  /// `950`, `1.2k`, `34M`: bytes in powers of 1024, three digits.
  static func bytes(_ count: Int) -> String {
    var (value, unit) = (Double(count), 0)
    while value >= 1000 && unit < 5 { (value, unit) = (value / 1024, unit + 1) }
    guard unit > 0 else { return String(count) }
    let tenths = Int((value * 10).rounded())
    return (tenths < 100 ? "\(tenths / 10).\(tenths % 10)" : String(Int(value.rounded())))
      + ["", "k", "M", "G", "T", "P"][unit]
  }

  /// `45s`, `12m`, `3h`, `5d`: `Duration.words` for a column.
  static func duration(_ seconds: Int) -> String {
    let words = Duration.seconds(seconds).words.split(separator: " ")
    return "\(words[0])\(words[1].prefix(1))"
  }
}
