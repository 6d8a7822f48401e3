import PrismBase
import PrismConfig
import PrismControl
import PrismProtocol

extension Command {
  static let doctor = Command(
    words: ["doctor"],
    summary: "check what commonly goes wrong, and say what to do; ends with 1 if something does not work",
    options: [
      Option("--config", "PATH", "the daemon's file (the one that it runs with, else /etc/prism/prismd.yaml)"),
      Option("--json", nil, "one JSON document"),
    ],
    sockets: [.control, .ingest], isWatchable: true,
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
    self.invocation = invocation
    var running: String?
    if invocation["--config"] == nil {
      try? ControlConnection(invocation, timeoutSeconds: 10).ask(ControlRequest(.configShow)) {
        running = $0[Answers.path]
      }
    }
    path = invocation["--config"] ?? running ?? "/etc/prism/prismd.yaml"
  }

  func findings() -> [Finding] {
    let answer = ask(.status)
    let before = answer.line?[Answers.status]
    let files = ConfigurationCheck(path)
    let isStranger = answer.exitCode == Failure.notPermitted
    let configuration = isStranger && files.loaded == nil ? [unseen] : files.findings
    let next = before?.nextStep.map { [Finding("next step", .warning, $0)] } ?? []
    var findings = next + [self.daemon(answer)] + configuration
    findings +=
      paths(files.loaded?.snapshot.daemon, isRunning: before != nil).map(atPaths) ?? [
        Finding("sockets", .skipped, "where they are is not known: no configuration is readable, and no daemon answers")
      ]
    if let before {
      findings += files.loaded == nil ? [] : inForce()
      let seen = seenByDaemon()
      findings += seen
      let explained = Set(seen.filter { $0.result == .fault }.flatMap(\.namespaces))
      let after = ask(.status).line?[Answers.status] ?? before
      let queues = QueueCheck.findings(
        before, after, explained: explained,
        refusedRecords: { ask(.deadList, [.init("namespace", .string($0))]).line?[Answers.refusedRecords] ?? [] },
        explain: { ask(.explain, [.init("namespace", .string($0))]).line?[Answers.text] })
      // A fault of the files is reported once, also if the daemon refused the files for it.
      findings += queues.filter { $0.check != "reload" || files.loaded != nil }
    } else if let loaded = files.loaded {
      findings += ReachCheck.findings(loaded.snapshot)
      findings.append(
        Finding("database", .skipped, "only the daemon looks into it; start it, then look again", advice: nil))
    }
    return findings
  }

  /// The paths of sockets and state: by the files, or by the running daemon if the files have faults. nil if neither
  /// knows them.
  private func paths(_ daemon: DaemonConfiguration?, isRunning: Bool) -> ConfigurationReport.Paths? {
    guard let daemon else {
      return isRunning
        ? ask(.configShow).line?[Answers.configuration].map { ConfigurationReport(controlJSON: $0).daemon } : nil
    }
    var paths = ConfigurationReport.Paths()
    (paths.ingestSocket, paths.controlSocket, paths.state) = (daemon.ingest.socket, daemon.control.socket, daemon.state)
    paths.ingestMode = FileModes.text(daemon.ingest.mode)
    (paths.controlGroup, paths.controlReaders) = (daemon.control.group, daemon.control.readers)
    return paths
  }

  private func atPaths(_ paths: ConfigurationReport.Paths) -> [Finding] {
    SocketCheck.findings(
      ingest: invocation.ingestSocket ?? paths.ingestSocket, mode: paths.ingestMode.flatMap { UInt32($0, radix: 8) },
      control: invocation["--control"] ?? paths.controlSocket,
      controlMode: paths.controlGroup != nil && paths.controlReaders != nil ? 0o666 : 0o660)
      + MachineCheck.findings(state: paths.state)
  }

  /// The last line of an answer, or the reason why there is no answer.
  private typealias Asked = (line: AnswerLine?, failure: String, exitCode: Int32)

  private func ask(_ command: ControlRequest.Command, _ arguments: [JSONValue.Member] = []) -> Asked {
    var line: AnswerLine?
    do throws(Failure) {
      let seconds = command == .doctor ? 120 : 30  // it looks at each collector
      try ControlConnection(invocation, timeoutSeconds: seconds).ask(ControlRequest(command, arguments)) {
        line = $0
      }
    } catch { return (nil, error.message, error.exitCode) }
    return (line, "the daemon does not tell", 0)
  }

  private func daemon(_ asked: Asked) -> Finding {
    if asked.exitCode == Failure.notPermitted {
      return Finding(
        "daemon", .skipped, "this user may not ask it: \(asked.failure)",
        advice: "run doctor as root, or as a member of control.readers or control.group")
    }
    guard let status = asked.line?[Answers.status] else {
      return Finding(
        "daemon", .fault, asked.failure,
        advice: "if it ended, `journalctl -u prismd -n 50` says why; of a trial, `prismd --dev` is to run")
    }
    let uptime = Duration.seconds(status.uptimeSeconds).words
    return Finding("daemon", .ok, "prismd \(status.version) has been up for \(uptime)")
  }

  /// Which files are in force is not known, or this user may not read them.
  private var unseen: Finding {
    Finding(
      "configuration", .skipped, "this user can't judge \(path)",
      advice: "`prismctl config check \(path)` shows what this user sees of it")
  }

  /// Whether the files say what the daemon works with.
  private func inForce() -> [Finding] {
    let answer = ask(.configDiff, [.init("path", .string(FilePath.absolute(path)))])
    guard let text = answer.line?[Answers.text] else { return [Finding("reload", .skipped, answer.failure)] }
    if text == "nothing would change" { return [Finding("reload", .ok, "the files say what is in force")] }
    let changes = "change".counted(text.split(separator: "\n").count)
    let command = text.contains(" takes a restart") ? "systemctl restart prismd" : "prismctl reload"
    return [
      Finding(
        "reload", .warning, "the files differ from what is in force: \(changes)",
        advice: "`prismctl config diff \(path)` shows them, `\(command)` puts them in force")
    ]
  }

  private func seenByDaemon() -> [Finding] {
    let answer = ask(.doctor)
    return answer.line?[Answers.findings] ?? [Finding("database", .skipped, answer.failure)]
  }
}

/// Doctor's findings for people: the result as a word, what was found, and below it what to do.
struct FindingTable {
  let text: String

  init(_ findings: [Finding], _ paint: Paint, columns: Int) {
    let lines = findings.flatMap { Self.lines($0, paint, max(40, columns)) }
    text = (lines + [Self.summary(findings, paint)]).joined(separator: "\n")
  }

  private static let indent = 8

  private static func lines(_ finding: Finding, _ paint: Paint, _ columns: Int) -> [String] {
    let found = "\(finding.check): \(finding.text)".printable.wrapped(columns - indent, indent: 0)
    let advice = finding.advice.map { "→ \($0)".printable.wrapped(columns - indent) } ?? []
    let word = paint(finding.result.rawValue.padded(indent), colour(finding.result))
    return found.enumerated().map { ($0 == 0 ? word : String(repeating: " ", count: indent)) + $1 }
      + advice.map { String(repeating: " ", count: indent) + $0 }
  }

  private static func colour(_ result: Finding.Result) -> Paint.Colour? {
    switch result {
    case .ok: .green
    case .warning: .yellow
    case .fault: .red
    case .skipped: .dim
    }
  }

  private static func summary(_ findings: [Finding], _ paint: Paint) -> String {
    func count(_ result: Finding.Result, _ word: String) -> String {
      word.counted(findings.count { $0.result == result })
    }
    let text = "\(count(.fault, "fault")), \(count(.warning, "warning"))"
    return paint(text, .bold)
  }
}
