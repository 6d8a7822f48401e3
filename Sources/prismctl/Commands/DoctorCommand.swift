import PrismConfig
import PrismProtocol

extension Command {
  static let doctor = Command(
    words: ["doctor"],
    summary: "look for what commonly goes wrong, and say what to do; ends with 1 where something does not work",
    options: [
      Option("--config", "PATH", "the daemon's file (/etc/prism/prismd.yaml)"),
      Option("--json", nil, "one JSON document"),
    ],
    example: "prismctl doctor"
  ) { invocation throws(Failure) in
    let findings = Examination(invocation).findings()
    if invocation.has("--json") {
      let counts = [Finding.Result.fault, .warning].map { result in findings.count { $0.result == result } }
      let document: JSONValue = [
        "findings": findings.controlJSON, "faults": .int(counts[0]), "warnings": .int(counts[1]),
      ]
      print(document.prettyText)
    } else {
      print(FindingTable(findings, .ofOutput, columns: Screen.size?.columns ?? 80).text)
    }
    if findings.contains(where: { $0.result == .fault }) { throw Failure(Failure.no, "") }
  }
}

/// All that doctor looks at: what can be seen from here first, then what the daemon sees.
private struct Examination {
  private let invocation: Invocation
  private let path: String

  init(_ invocation: Invocation) {
    (self.invocation, path) = (invocation, invocation["--config"] ?? "/etc/prism/prismd.yaml")
  }

  func findings() -> [Finding] {
    let answer = ask(.status)
    let before = answer.line?.status
    let files = ConfigurationCheck(path)
    var findings = [self.daemon(answer)] + files.findings
    let daemon = files.loaded?.snapshot.daemon
    findings += SocketCheck.findings(
      ingest: invocation.ingestSocket ?? daemon?.ingest.socket, mode: daemon?.ingest.mode,
      control: invocation["--control"] ?? daemon?.control.socket,
      controlMode: daemon?.control.group != nil && daemon?.control.readers != nil ? 0o666 : 0o660)
    findings += MachineCheck.findings(state: daemon?.state)
    if let before {
      findings += inForce()
      findings += seenByDaemon()
      findings += QueueCheck.findings(before, ask(.status).line?.status ?? before) { namespace in
        ask(.explain, [.init("namespace", .string(namespace))]).line?.text
      }
    } else if let loaded = files.loaded {
      findings += ReachCheck.findings(loaded.snapshot)
      findings.append(
        Finding("database", .skipped, "only the daemon looks into it; start it, then look again", advice: nil))
    }
    return findings
  }

  /// The last line of an answer, or why there is none.
  private typealias Asked = (line: AnswerLine?, failure: String)

  private func ask(_ command: ControlRequest.Command, _ arguments: [JSONValue.Member] = []) -> Asked {
    var line: AnswerLine?
    do throws(Failure) {
      try ControlConnection(invocation, patienceSeconds: 120).ask(ControlRequest(command, arguments)) {
        line = $0.line
      }
    } catch { return (nil, error.message) }
    return (line, "the daemon does not tell")
  }

  private func daemon(_ asked: Asked) -> Finding {
    guard let status = asked.line?.status else {
      return Finding(
        "daemon", .fault, asked.failure,
        advice: "start it, or find out why it ends: `systemctl status prismd`, `journalctl -u prismd -n 50`")
    }
    let uptime = StatusTable.duration(status.uptimeSeconds)
    return Finding("daemon", .ok, "prismd \(status.version) has been up for \(uptime)")
  }

  /// Whether the files say what the daemon works with.
  private func inForce() -> [Finding] {
    let answer = ask(.configDiff, [.init("path", .string(FilePaths.absolute(path)))])
    guard let text = answer.line?.text else { return [Finding("reload", .skipped, answer.failure)] }
    if text == "nothing would change" { return [Finding("reload", .ok, "the files say what is in force")] }
    let changes = "change".counted(text.split(separator: "\n").count)
    return [
      Finding(
        "reload", .warning, "the files differ from what is in force: \(changes)",
        advice: "`prismctl config diff \(path)` shows them, `prismctl reload` puts them in force")
    ]
  }

  private func seenByDaemon() -> [Finding] {
    let answer = ask(.doctor)
    return answer.line?.findings ?? [Finding("database", .skipped, answer.failure)]
  }
}
