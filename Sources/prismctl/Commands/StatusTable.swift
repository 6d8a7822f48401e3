import PrismProtocol

/// `prismctl status` for people, in 80 columns.
struct StatusTable {
  let text: String

  init(_ status: JSONValue) {
    let namespaces = status["namespaces"]?.object ?? []
    let lines = Self.daemonLines(status) + ["", Self.header] + namespaces.flatMap { Self.rows($0.key, $0.value) }
    let notes =
      Self.remoteNotes(status["remote"]) + Self.storeNotes(status["store"]).map { Paint.ofOutput($0, .red) }
      + namespaces.flatMap { Self.notes($0.key, $0.value) }.map { Paint.ofOutput($0, .yellow) }
    let faults = (status["configFaults"]?.array ?? []).compactMap(\.string)
    let tail = notes.isEmpty ? [] : [""] + notes
    text =
      (lines + tail + faults.map { Paint.ofOutput("configuration: \($0)", .red) }).joined(separator: "\n")
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
  private static func remoteNotes(_ remote: JSONValue?) -> [String] {
    guard let remote, let state = remote["state"]?.string else { return [] }
    let number = remote["lastApplied"]?["number"]?.int.map { "\($0) in force" } ?? "nothing in force"
    let wait = remote["nextAskInSeconds"]?.int.map { ", asked again in \(duration($0))" } ?? ", \(state)"
    let count = remote["namespaces"]?.array?.count ?? 0
    var notes = ["remote configuration: \(number), of \(count) namespace\(count == 1 ? "" : "s")\(wait)"]
    if let trials = remote["probation"]?.object, !trials.isEmpty {
      notes.append("remote configuration on probation: \(trials.map(\.key).joined(separator: ", "))")
    }
    if let cause = remote["cause"]?.string {
      notes.append(Paint.ofOutput("remote configuration can't be asked for: \(cause)".printable, .yellow))
    }
    if let failed = remote["lastFailed"], let reason = failed["reason"]?.string {
      let number = failed["number"]?.int.map { "\($0)" } ?? "an answer"
      let text = "remote configuration: \(number) was refused or taken back: \(reason)"
      notes.append(Paint.ofOutput(text.printable, .red))
    }
    return notes
  }

  private static let header =
    "NAMESPACE".padded(16) + "KIND".padded(8)
    + zip(["WAITING", "CLAIMED", "DEAD", "BYTES", "OLDEST", "DELIVERED"], widths).map { $0.paddedLeft($1) }.joined()

  /// Of the figures' columns; with the names 78 of a terminal's 80 columns.
  private static let widths = [9, 9, 7, 9, 9, 11]

  private static func rows(_ name: String, _ namespace: JSONValue) -> [String] {
    ReportKind.allCases.compactMap { kind in
      guard let queue = namespace[kind.rawValue] else { return nil }
      let figures = [
        String(queue["waiting"]?.int ?? 0), String(queue["claimed"]?.int ?? 0), String(queue["dead"]?.int ?? 0),
        bytes(queue["bytes"]?.int ?? 0), duration(queue["oldestAgeSeconds"]?.int ?? 0),
        String(queue["ledger"]?["delivered"]?.int ?? 0),
      ]
      return String(name.prefix(15)).padded(16) + kind.rawValue.padded(8)
        + zip(figures, widths).map { $0.paddedLeft($1) }.joined()
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
