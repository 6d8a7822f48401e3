import CArguments
import Glibc
import PrismBase
import PrismProtocol

/// Every command, in the order of `--help`.
let commands: [Command] = [
  .send, .run, .status, .top, .tail, .doctor, .flush, .reload, .network, .explain, .trace, .deadList, .deadShow,
  .deadRequeue, .deadDrop, .acceptStore, .ack, .remove, .export, .carry, .configCheck, .configShow, .configDiff,
  .keysNew,
  .enroll, .decode,
  .unseal, .recordPut, .recordPatch, .recordGet, .recordList, .recordDelete,
  .recordWatch, .commandList,
  .completion(of: "prismctl"),
]

let program = Program(
  "prismctl", version: PrismVersion.line(of: "prismctl", commit: String(cString: prism_commit())), commands: commands,
  options: [Command.control, Command.ingest],
  exitCodes: [
    (0, "done"), (Failure.no, "the answer is no: refused, not found, a fault found"),
    (Failure.usage, "the command line"), (Failure.data, "a file holds what can't be sent"),
    (Failure.noInput, "a file can't be read"), (Failure.unavailable, "the daemon does not answer"),
    (Failure.software, "the answer can't be understood"), (Failure.cannotCreate, "a file can't be made"),
    (Failure.output, "the output can't be written"),
    (Failure.notPermitted, "this user may not ask for it"),
    (Failure.configuration, "a configuration or a key is faulty"),
  ], note: "`run` ends with the exit code of its program.")

/// Runs one command line and answers the exit code (docs/man/prismctl.1).
@MainActor
func runPrismctl(_ words: [String]) async -> Int32 {
  signal(SIGPIPE, SIG_IGN)
  let exitCode = await run(words)
  let code = prism_flush_output()
  guard code != 0 else { return exitCode }
  // A reader that has read enough is no fault to speak of.
  if code != EPIPE { Terminal.printError("prismctl: standard output: \(String(cString: strerror(code)))") }
  return Failure.output
}

@MainActor
private func run(_ words: [String]) async -> Int32 {
  do throws(Failure) {
    guard let invocation = try program.read(words, names: DaemonNames(line: words).of) else { return 0 }
    try invocation.checkShared()
    if let seconds = invocation.watchSeconds {
      try await Watching.run(invocation, everySeconds: seconds)
    }
    return try await invocation.run()
  } catch {
    // The faults of a configuration name their files themselves, so that an editor finds each line.
    let head = error.exitCode == Failure.configuration ? "" : "prismctl: "
    if !error.message.isEmpty { Terminal.printError((head + error.message).printableLines) }
    return error.exitCode
  }
}
