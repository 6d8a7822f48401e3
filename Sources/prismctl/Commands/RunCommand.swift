import PrismBase
import PrismClient
import PrismProtocol
import Synchronization

extension Command {
  static let run = Command(
    words: ["run"], summary: "run a program and report its duration, exit, CPU time and memory",
    operands: ["COMMAND", "[ARGUMENTS...]"],
    options: [
      Option("--type", "T", "the report's type"),
      Option("--namespace", "N", "its namespace (prism)"),
      Option("--name", "TEXT", "the program's name in the report (its file name)"),
      Option("--deadline", "SECONDS", "how long to wait for the daemon at the end (2); then the report is spooled"),
    ],
    sockets: [.ingest],
    example: "prismctl run --type backup -- backup.sh --all"
  ) { invocation async throws(Failure) in
    guard let type = invocation["--type"].flatMap({ ReportType($0) }) else {
      throw .usage("run: --type is missing or not a type: 1 to 128 of A-Z a-z 0-9 _ . : -")
    }
    let namespace = try invocation.namespace
    guard let seconds = Int(invocation["--deadline"] ?? "2"), (0...3600).contains(seconds) else {
      throw .usage("--deadline: 0 to 3600 seconds")
    }
    let program = invocation.operands[0]
    let ran = try ChildProgram.run(invocation.operands)
    var report = Report(type, in: namespace, meta: ran.meta(name: invocation["--name"] ?? fileName(program)))
    if ran.exitCode != 0 { report.payload = ran.lastOutput.bytes }
    await deliver(report, invocation, seconds)
    if ran.exitCode != 0 { throw Failure(ran.exitCode, "") }
    if let fault = ran.outputFault {
      throw Failure(Failure.output, "run: the program's output can't be written: \(fault)")
    }
  }

  private static func fileName(_ path: String) -> String { String(path.split(separator: "/").last ?? "") }

  /// Says on standard error what became of a report that is not stored; the program's exit code stays what it is.
  private static func deliver(_ report: Report, _ invocation: Invocation, _ seconds: Int) async {
    let isLost = Atomic(false)
    do {
      var answer = try await answer(to: report, invocation, seconds) { loss in
        if loss.cause == .spoolFull { isLost.store(true, ordering: .relaxed) }
      }
      // The client has ended: what was left of its queue is in the spool or lost.
      if case .queued = answer, isLost.load(ordering: .relaxed) { answer = .dropped }
      if let problem = problem(answer) { complain(problem) }
    } catch { complain("the report is lost: \(error.description)") }
  }

  private static func answer(
    to report: Report, _ invocation: Invocation, _ seconds: Int, onLoss: @escaping @Sendable (SpooledLoss) -> Void
  ) async throws(SpooledClient.OpenError) -> SpooledAnswer {
    let client = try SpooledClient(socket: invocation.ingestSocket, appName: "prismctl run", onLoss: onLoss)
    return await client.report(report, within: .seconds(seconds))
  }

  private static func complain(_ problem: String) { Terminal.printError("prismctl run: \(problem.printable)") }

  /// nil: the report is stored.
  private static func problem(_ answer: SpooledAnswer) -> String? {
    switch answer {
    case .stored: nil
    case .spooled, .queued: "the daemon does not answer: the report is sent by a later program"
    case .refused(_, let refusal): "refused, \(refusal.code.rawValue): \(refusal.message)"
    case .dropped:
      "the report is lost: the daemon does not answer, and the spool is full, unusable, or has no place; set PRISM_SPOOL"
    case .rejected(let reason): "the report is lost: \(reason)"
    }
  }
}
