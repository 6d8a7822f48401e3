import PrismProtocol

/// `prismctl status` for people: what is stored, how delivery stands, and what is wrong.
struct StatusTable {
  let text: String

  /// - Parameter columns: of the terminal; nil: there is none, so that no name is cut and no line broken.
  init(_ status: JSONValue, columns: Int?, paint: Paint = .ofOutput) {
    let namespaces = (status["namespaces"]?.object ?? []).map { ($0.key, $0.value) }
    let longest = namespaces.map(\.0.count).max() ?? 0
    let width = max(16, min(longest + 1, columns.map { $0 - Self.queueWidth } ?? .max))
    let tables =
      [Self.queueHeader(width)] + namespaces.flatMap { Self.queues($0.0, $0.1, width) }
      + ["", Self.deliveryHeader(width)] + namespaces.map { Self.delivery($0.0, $0.1, width) }
    let faults = (status["configFaults"]?.array ?? []).compactMap(\.string).map { "configuration: \($0)" }
    let notes: [(String, Paint.Colour?)] =
      Self.remoteNotes(status["remote"]) + Self.storeNotes(status["store"]).map { ($0, .red) }
      + namespaces.flatMap { Self.notes($0.0, $0.1) }.map { ($0, .yellow) }
      + namespaces.flatMap { Self.losses($0.0, $0.1) }.map { ($0, nil) } + faults.map { ($0, .red) }
    let tail = notes.flatMap { note in note.0.wrapped(columns).map { paint($0, note.1) } }
    text = (Self.daemonLines(status) + [""] + tables + (tail.isEmpty ? [] : [""]) + tail).joined(separator: "\n")
  }

  static func daemonLines(_ status: JSONValue) -> [String] {
    let network = status["network"]
    let interface = network?["interface"]?.string.map { " (\($0))" } ?? ""
    let lines = [
      [
        "prismd \(status["version"]?.string ?? "?")", "up \(duration(status["uptimeSeconds"]?.int ?? 0))",
        "configuration \(status["generation"]?.int ?? 0)",
      ],
      [
        "store \(bytes(status["storeBytes"]?.int ?? 0))",
        "memory \(bytes(status["memory"]?["residentBytes"]?.int ?? 0))",
        "network \(network?["kind"]?.string ?? "?")\(interface)",
      ],
    ]
    return lines.map { $0.joined(separator: ", ") }
  }

  /// Nothing while remote configuration is off.
  private static func remoteNotes(_ remote: JSONValue?) -> [(String, Paint.Colour?)] {
    guard let remote, let state = remote["state"]?.string else { return [] }
    let number = remote["lastApplied"]?["number"]?.int.map { "\($0) in force" } ?? "nothing in force"
    let wait = remote["nextAskInSeconds"]?.int.map { ", asked again in \(duration($0))" } ?? ", \(state)"
    let count = remote["namespaces"]?.array?.count ?? 0
    var notes: [(String, Paint.Colour?)] = [
      ("remote configuration: \(number), of \("namespace".counted(count))\(wait)", nil)
    ]
    if let trials = remote["probation"]?.object, !trials.isEmpty {
      notes.append(("remote configuration on probation: \(trials.map(\.key).joined(separator: ", "))", nil))
    }
    if let cause = remote["cause"]?.string {
      notes.append(("remote configuration can't be asked for: \(cause)".printable, .yellow))
    }
    if remote["isStale"]?.bool == true, let until = remote["validUntil"]?.string {
      let text =
        "remote configuration: the last signed answer expired at \(until); answers are held back, or a clock is wrong"
      notes.append((text.printable, .yellow))
    }
    if let failed = remote["lastFailed"], let reason = failed["reason"]?.string {
      let number = failed["number"]?.int.map { "\($0)" } ?? "an answer"
      let text = "remote configuration: \(number) was refused or taken back: \(reason)"
      notes.append((text.printable, .red))
    }
    return notes
  }

  // MARK: What is stored

  private static let queueTitles = ["WAITING", "CLAIMED", "DEAD", "BYTES", "OLDEST", "DELIVERED"]
  private static let queueWidths = [9, 9, 7, 9, 9, 11]
  private static let kindWidth = 8
  private static var queueWidth: Int { kindWidth + queueWidths.reduce(0, +) }

  private static func queueHeader(_ width: Int) -> String {
    "NAMESPACE".padded(width) + "KIND".padded(kindWidth)
      + zip(queueTitles, queueWidths).map { $0.paddedLeft($1) }.joined()
  }

  private static func queues(_ name: String, _ namespace: JSONValue, _ width: Int) -> [String] {
    ReportKind.allCases.compactMap { kind in
      guard let queue = namespace[kind.rawValue] else { return nil }
      let figures = [
        String(queue["waiting"]?.int ?? 0), String(queue["claimed"]?.int ?? 0), String(queue["dead"]?.int ?? 0),
        bytes(queue["bytes"]?.int ?? 0), duration(queue["oldestAgeSeconds"]?.int ?? 0),
        String(queue["ledger"]?["delivered"]?.int ?? 0),
      ]
      return name.fitted(width) + kind.rawValue.padded(kindWidth)
        + zip(figures, queueWidths).map { $0.paddedLeft($1) }.joined()
    }
  }

  // MARK: How delivery stands

  private static func deliveryHeader(_ width: Int) -> String {
    delivery("NAMESPACE", "STATE", "CIRCUIT", "LAST SUCCESS", "NEXT TRY", "METERED FLOW", width)
  }

  private static func delivery(_ name: String, _ namespace: JSONValue, _ width: Int) -> String {
    let success = namespace["lastSuccess"]?.string.map { $0.prefix(19) + "Z" } ?? "-"
    let flow = namespace["flow"]
    return delivery(
      name, namespace["state"]?.string ?? "?", namespace["circuit"]?.string ?? "?", String(success),
      namespace["nextTryInSeconds"]?.int.map { "in " + duration($0) } ?? "-",
      "\(bytes(flow?["usedBytes"]?.int ?? 0)) of \(bytes(flow?["allowedBytes"]?.int ?? 0))", width)
  }

  private static func delivery(
    _ name: String, _ state: String, _ circuit: String, _ success: String, _ next: String, _ flow: String, _ width: Int
  ) -> String {
    name.fitted(width) + state.padded(kindWidth) + circuit.paddedLeft(9) + success.paddedLeft(22)
      + next.paddedLeft(9) + flow.paddedLeft(14)
  }

  /// What left without having been delivered; nothing where there is none of it.
  private static func losses(_ name: String, _ namespace: JSONValue) -> [String] {
    ReportKind.allCases.compactMap { kind in
      let counts = ["expired", "evicted", "cleared", "removed", "corrupt"].compactMap { account -> String? in
        let count = namespace[kind.rawValue]?["ledger"]?[account]?.int ?? 0
        return count > 0 ? "\(count) \(account)" : nil
      }
      return counts.isEmpty ? nil : "\(name): \(kind.rawValue) rows not delivered: \(counts.joined(separator: ", "))"
    }
  }

  /// What is wrong with the store, or was since the daemon's start.
  static func storeNotes(_ store: JSONValue?) -> [String] {
    guard let store, let state = store["state"]?.string else { return [] }
    var notes: [String] = []
    if state != "working" { notes.append("\(state) since \(store["since"]?.string ?? "?")") }
    if store["takesReports"]?.bool == false { notes.append("reports are refused") }
    if let count = store["setAside"]?.int, count > 0 {
      let (saved, lost) = (store["salvagedRows"]?.int ?? 0, store["lostRows"]?.int ?? 0)
      notes.append("\(count) damaged set aside, \(saved) rows saved, \(lost) lost")
    }
    guard !notes.isEmpty else { return [] }
    if let cause = store["cause"]?.string { notes.append(cause) }
    return ["store: \(notes.joined(separator: "; "))".printable]
  }

  /// What an operator should know of a namespace beyond its figures; nothing where all is well.
  static func notes(_ name: String, _ namespace: JSONValue) -> [String] {
    var notes: [String] = []
    if let state = namespace["state"]?.string, state != "active" { notes.append(state) }
    if let circuit = namespace["circuit"]?.string, circuit != "closed" { notes.append("circuit \(circuit)") }
    // RFC 3339 in UTC sorts by time. What was delivered since then is no worry any more.
    if let failure = namespace["lastFailure"], let cause = failure["cause"]?.string,
      failure["time"]?.string ?? "" > namespace["lastSuccess"]?.string ?? ""
    {
      notes.append("last failure \(failure["time"]?.string ?? ""): \(cause)")
    }
    if let wait = namespace["nextTryInSeconds"]?.int, !notes.isEmpty { notes.append("next try in \(duration(wait))") }
    return notes.isEmpty ? [] : ["\(name): \(notes.joined(separator: "; "))".printable]
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

  /// `45s`, `12m`, `3h`, `5d`.
  static func duration(_ seconds: Int) -> String {
    switch seconds {
    case ..<120: "\(seconds)s"
    case ..<7200: "\(seconds / 60)m"
    case ..<172_800: "\(seconds / 3600)h"
    default: "\(seconds / 86_400)d"
    }
  }
}
