import CArguments
import Glibc
import PrismProtocol

/// Every command, in the order of `--help`.
let commands: [Command] = [
  .send, .run, .status, .top, .tail, .doctor, .flush, .reload, .network, .explain, .trace, .deadList, .deadShow,
  .deadRequeue, .deadDrop, .acceptStore, .ack, .remove, .export, .carry, .configCheck, .configShow, .configDiff,
  .keysNew,
  .enroll, .decode,
  .unseal, .recordPut, .recordPatch, .recordGet, .recordList, .recordDelete,
  .recordWatch, .commandList,
  .completion,
]

/// Runs one command line and answers the exit code (`Overview.exitCodes`).
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
    guard let invocation = try Invocation(words) else { return 0 }
    if let seconds = invocation.watchSeconds {
      try await Watching.run(invocation, everySeconds: seconds)
    } else {
      try await invocation.command.run(invocation)
    }
    return 0
  } catch {
    // The faults of a configuration name their files themselves, so that an editor finds each line.
    let head = error.exitCode == Failure.configuration ? "" : "prismctl: "
    if !error.message.isEmpty { Terminal.printError((head + error.message).printableLines) }
    return error.exitCode
  }
}
