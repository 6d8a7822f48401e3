import PrismBase
import PrismControl
import PrismProtocol

/// Checks the queues by the status: rows that wait too long, that only grow, that are held, and dead letters.
enum QueueCheck {
  /// Rows older than this should be on their way.
  static let oldSeconds = 600

  /// - Parameter before: an earlier status than `now`.
  /// - Parameter explained: namespaces of which another finding says what is wrong.
  /// - Parameter refusedRecords: records of a namespace whose last change the server refused.
  /// - Parameter explain: why rows of a namespace wait, in words.
  static func findings(
    _ before: StatusReport, _ now: StatusReport, explained: Set<String> = [],
    refusedRecords: (String) -> [RefusedRecordReport] = { _ in [] }, explain: (String) -> String?
  ) -> [Finding] {
    let configuration = now.configFaults.first.map { fault in
      let restarts = fault.contains("; restart it")
      let advice =
        restarts ? "take the change back, or `systemctl restart prismd`" : "mend the files, then `prismctl reload`"
      return Finding("reload", .fault, "the last reload was refused: \(fault)", advice: advice)
    }
    let found = now.namespaces.flatMap { entry in
      examine(
        entry.name, before.namespaces[entry.name], entry.value, isExplained: explained.contains(entry.name), explain)
        + RecordCheck.findings(
          entry.name, entry.value, isExplained: explained.contains(entry.name), refused: refusedRecords)
    }
    let faults = now.faults.map { Finding("log", .fault, $0, advice: "mend it; `journalctl -u prismd` has the time") }
    return [configuration].compactMap { $0 } + faults + remote(now) + network(now, explain) + limits(now) + dropped(now)
      + unconfigured(now)
      + (found.isEmpty ? [Finding("queues", .ok, "nothing waits too long")] : found)
  }

  /// Requests of other inputs that met their limit.
  private static func limits(_ now: StatusReport) -> [Finding] {
    let prefix = "too large "
    return now.refused.filter { $0.name.hasPrefix(prefix) }.map { refused in
      let input = refused.name.dropFirst(prefix.count)
      return Finding(
        "limit \(input)", .warning, "\("request".counted(refused.value)) of \(input) were larger than is taken",
        advice: "let its sender send smaller chunks or batches; the page of each input says its limits")
    }
  }

  private static func dropped(_ now: StatusReport) -> [Finding] {
    let prefix = "dropped "
    return now.refused.filter { $0.name.hasPrefix(prefix) }.map { refused in
      Finding(
        "datagrams \(refused.name.dropFirst(prefix.count))", .warning,
        "the kernel dropped \("datagram".counted(refused.value)) since the start: the socket had no room",
        advice: "raise net.core.rmem_max, or let senders use the Unix socket, where they wait")
    }
  }

  /// Reports of namespaces and types that no configuration has. Senders that send again wait for it.
  private static func unconfigured(_ now: StatusReport) -> [Finding] {
    now.refused.filter { RefusalCode(rawValue: $0.name)?.waitsForConfiguration == true }.map { refused in
      Finding(
        "refused \(refused.name)", .warning,
        "\("report".counted(refused.value)) came since the start for a namespace or type that is not configured, or of one type more than a pattern takes",
        advice: "`prismctl tail --refused` shows the next ones, with the lines to add if there are such")
    }
  }

  /// Faults of remote configuration.
  private static func remote(_ now: StatusReport) -> [Finding] {
    guard let remote = now.remote else { return [] }
    var findings: [Finding] = []
    if let failed = remote.lastFailed {
      findings.append(
        Finding(
          "remote configuration", .warning, "the last one was refused or taken back: \(failed.reason)",
          advice: "what was in force stays; docs/remote-configuration.md says what each refusal needs"))
    }
    if remote.isStale || remote.failuresInRow > 0 {
      let cause = remote.cause ?? "no signed answer came before the last one expired"
      findings.append(
        Finding(
          "remote configuration", .warning, "it can't be asked for: \(cause)",
          advice: "look at remote.url, and at the clocks of both sides; what was in force stays"))
    }
    return findings
  }

  /// A machine that is offline at times, or whose rows stay on it, has no fault without a network.
  private static func network(_ now: StatusReport, _ explain: (String) -> String?) -> [Finding] {
    // A collector on this machine needs no network.
    let waits = now.namespaces.contains {
      $0.value.meta.waiting + $0.value.payload.waiting > 0 && explain($0.name)?.contains(": network: ") == true
    }
    guard now.network.kind == "none", waits else { return [] }
    return [
      Finding(
        "network", .warning, "there is no network (no usable default route), and rows wait to be sent",
        advice:
          "`ip route` shows the routes, `prismctl network` tells why no interface counts; `network.interfaces` overrules it"
      )
    ]
  }

  private static func examine(
    _ name: String, _ before: NamespaceReport?, _ now: NamespaceReport, isExplained: Bool,
    _ explain: (String) -> String?
  ) -> [Finding] {
    var findings: [Finding] = []
    let (waiting, oldest) = (now.unsentRows, now.oldestAgeSeconds)
    let isStuck = now.isHeld || now.circuitIsOpen
    let isLimited = [429, 507].contains(now.presentFailure?.status)
    if waiting > 0 && (isStuck || isLimited || oldest > oldSeconds) {
      let before = before ?? NamespaceReport()
      let grew = before.deliveredRows == now.deliveredRows && now.storedRows > before.storedRows
      let text =
        "\("row".counted(waiting)) not sent, the oldest for \(Duration.seconds(oldest).words)"
        + (grew ? ", and more come" : "")
      findings.append(
        Self.waiting(
          "queue \(name)", of: name, now, text, isExplained: isExplained, isFault: isStuck || grew,
          advice: advice(name, now, explain(name))))
    }
    let setBack = now.meta.setBack + now.payload.setBack
    if setBack > 0 {
      findings.append(
        Finding(
          "size \(name)", .warning, "\("row".counted(setBack)) too large for something before the collector",
          advice: "raise its limit of bodies (nginx: client_max_body_size), then `prismctl flush \(name)`"))
    }
    if now.deadRows > 0 {
      findings.append(
        Finding(
          "dead letters \(name)", .warning, "the collector can't take \("row".counted(now.deadRows))",
          advice: "`prismctl dead list --namespace \(name)` tells why; then requeue or drop them"))
    }
    return findings
  }

  /// Rows or changes that wait, with the last failure, unless another finding says what is wrong with the namespace.
  static func waiting(
    _ check: String, of name: String, _ now: NamespaceReport, _ text: String, isExplained: Bool, isFault: Bool,
    advice: @autoclosure () -> String
  ) -> Finding {
    if isExplained { return Finding(check, .warning, "\(text): they wait for what is said above of \(name)") }
    let why = now.presentFailure.map { "; last failure: \($0.cause)" } ?? ""
    return Finding(check, isFault ? .fault : .warning, text + why, advice: advice())
  }

  private static func advice(_ name: String, _ namespace: NamespaceReport, _ words: String?) -> String {
    if namespace.isRetired {
      return
        "the namespace is not configured any more: configure it again, or `prismctl remove --namespace \(name) --all`"
    }
    let keeping = words?.split(separator: "\n").first {
      !$0.hasSuffix("nothing waits") && !$0.contains("nothing keeps it")
    }
    let gate = keeping.map { " (\($0))" } ?? ""
    return "`prismctl explain \(name)` tells what keeps them\(gate)"
  }
}
