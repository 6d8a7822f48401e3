import PrismProtocol

/// What the status tells of queues: what waits too long, what only grows, what is held, what is dead.
enum QueueCheck {
  /// Rows older than this should be on their way.
  static let oldSeconds = 600

  /// - Parameter before: an earlier status than `now`.
  /// - Parameter explain: why rows of a namespace wait, in words.
  static func findings(_ before: JSONValue, _ now: JSONValue, explain: (String) -> String?) -> [Finding] {
    let namespaces = now["namespaces"]?.object ?? []
    let faults = (now["configFaults"]?.array ?? []).compactMap(\.string)
    let configuration =
      faults.isEmpty
      ? []
      : [
        Finding(
          "reload", .fault, "the last reload was refused: \(faults[0])",
          advice: "mend the files, then `prismctl reload`")
      ]
    let found = namespaces.flatMap { member in
      examine(member.key, before["namespaces"]?[member.key] ?? .null, member.value, explain)
    }
    return configuration + network(now) + (found.isEmpty ? [Finding("queues", .ok, "nothing waits too long")] : found)
  }

  /// No network is no fault of a machine that is offline at times, and of none whose rows stay on it.
  private static func network(_ now: JSONValue) -> [Finding] {
    let waits = (now["namespaces"]?.object ?? []).contains { member in
      ReportKind.allCases.contains { figure(member.value, $0, "waiting") > 0 }
    }
    guard now["network"]?["kind"]?.string == "none", waits else { return [] }
    return [
      Finding(
        "network", .warning, "there is none, and rows wait to be sent",
        advice: "`prismctl network` tells why; `network.interfaces` overrules what prismd makes of an interface")
    ]
  }

  private static func examine(
    _ name: String, _ before: JSONValue, _ now: JSONValue, _ explain: (String) -> String?
  ) -> [Finding] {
    var findings: [Finding] = []
    let waiting = ReportKind.allCases.reduce(0) { $0 + figure(now, $1, "waiting") + figure(now, $1, "claimed") }
    let oldest = ReportKind.allCases.map { figure(now, $0, "oldestAgeSeconds") }.max() ?? 0
    let isStuck = now["state"]?.string == "held" || now["circuit"]?.string == "open"
    if waiting > 0 && (isStuck || oldest > oldSeconds) {
      let grew = settled(before) == settled(now) && stored(now) > stored(before)
      let text =
        "\("row".counted(waiting)) not sent, the oldest for \(StatusTable.duration(oldest))"
        + (grew ? ", and more come" : "")
      findings.append(
        Finding(
          "queue \(name)", isStuck || grew ? .fault : .warning, text + why(now),
          advice: advice(name, now, explain(name))))
    }
    let dead = ReportKind.allCases.reduce(0) { $0 + figure(now, $1, "dead") }
    if dead > 0 {
      findings.append(
        Finding(
          "dead letters \(name)", .warning, "the collector can't take \("row".counted(dead))",
          advice: "`prismctl dead list --namespace \(name)` tells why; then requeue or drop them"))
    }
    return findings
  }

  private static func why(_ namespace: JSONValue) -> String {
    guard let failure = namespace["lastFailure"], let cause = failure["cause"]?.string,
      failure["time"]?.string ?? "" > namespace["lastSuccess"]?.string ?? ""
    else { return "" }
    return "; last failure: \(cause)"
  }

  private static func advice(_ name: String, _ namespace: JSONValue, _ words: String?) -> String {
    if namespace["state"]?.string == "retired" {
      return
        "the namespace is not configured any more: configure it again, or `prismctl remove --namespace \(name) --all`"
    }
    let gate = words?.split(separator: "\n").first.map { " (\($0))" } ?? ""
    return "`prismctl explain \(name)` tells what keeps them\(gate)"
  }

  private static func figure(_ namespace: JSONValue, _ kind: ReportKind, _ key: String) -> Int {
    namespace[kind.rawValue]?[key]?.int ?? 0
  }

  private static func stored(_ namespace: JSONValue) -> Int {
    ReportKind.allCases.reduce(0) { $0 + (namespace[$1.rawValue]?["ledger"]?["stored"]?.int ?? 0) }
  }

  private static func settled(_ namespace: JSONValue) -> Int {
    ReportKind.allCases.reduce(0) { $0 + (namespace[$1.rawValue]?["ledger"]?["delivered"]?.int ?? 0) }
  }
}
