import CArguments
import Dispatch
import Glibc
import PrismBase
import PrismCollector
import PrismConfig
import PrismProtocol

/// Every command, each of which works whether the collector runs or not.
let program = Program(
  "prism-collector", version: PrismVersion.line(of: "prism-collector", commit: String(cString: prism_commit())),
  commands: [
    [.check, .migrate, .backup, .restore, .importing, .deviceKey], Command.device, [.query], Command.record,
    Command.command, Command.job, [.ask], Command.crash, Command.release, Command.symbols, Command.notice,
    Command.output, [.erase, .completion(of: "prism-collector")],
  ].flatMap(\.self), root: "takes packets, and serves reports", options: Flags.options,
  exitCodes: [
    (0, "done"), (Failure.no, "the answer is no: refused, not found, not all taken, not confirmed"),
    (Failure.usage, "the command line"), (Failure.noInput, "a file or a folder can't be read"),
    (Failure.unavailable, "the store or another resource is not there"),
    (Failure.cannotCreate, "a file or a folder can't be made"), (Failure.output, "input or output fails"),
    (75, "not all devices have answered"), (Failure.configuration, "a configuration or a key is faulty"),
  ])

/// Ends the program unless a collector is to serve, or a command needs threads. Everything that needs no thread is done
/// before there is one: libdispatch ends a program that has no /proc.
func lineOrExit(_ words: [String]) -> Invocation {
  do throws(Failure) {
    if let line = try program.read(words) {
      guard case .early(let work) = line.command.work else { return line }
      try work(line)
    }
    exit(printed(0))
  } catch { exit(error.said) }
}

extension Failure {
  /// The exit code, once the message is said; an empty one was said before.
  fileprivate var said: Int32 {
    if !message.isEmpty { complain(message) }
    return exitCode
  }
}

/// The exit code of a command, or 74 where what it printed could not be written.
func printed(_ code: Int32) -> Int32 {
  let fault = prism_flush_output()
  return code == 0 && fault != 0 ? outputFailed(fault) : code
}

/// Says why standard output failed, but for a reader that has read enough. - Returns: the exit code.
func outputFailed(_ fault: Int32) -> Int32 {
  if fault != EPIPE { complain("standard output: \(String(cString: strerror(fault)))") }
  return 74
}

/// Serves until SIGTERM or SIGINT; SIGUSR1 prints what it counted. Answers the exit code.
func runCollector(_ line: Invocation, _ notifier: ServiceNotifier) async -> Int32 {
  do throws(Failure) {
    guard line.command.words.isEmpty else { return try await line.run() }
    var flags = try Flags(line.given)
    if flags.prints { flags.options.print = { StandardStreams.say($0 + "\n", to: STDOUT_FILENO) } }
    return await serve(flags.options, notifier, Logger())
  } catch { return error.said }
}

/// The options with as many connections as the limit of open files has room for.
private func withConnections(_ options: CollectorOptions, _ log: Logger) -> CollectorOptions {
  let limit = DescriptorLimit.raise()
  let room = max(16, DescriptorLimit.connectionsMax(of: limit) - CollectorServer.readersMax)
  guard room < options.connectionsMax else { return options }
  log.warning(
    "the limit of open files leaves fewer connections than connectionMax; raise it (systemd: LimitNOFILE=)",
    ["openFiles": "\(limit)", "connections": "\(room)"])
  var options = options
  options.connectionsMax = room
  return options
}

private func serve(_ options: CollectorOptions, _ notifier: ServiceNotifier, _ log: Logger) async -> Int32 {
  let (stops, continuation) = AsyncStream.makeStream(of: Void.self)
  let queue = DispatchQueue(label: "prism.collector.signals")
  do {
    // A stop during the start waits for its end: killed, it would count as one that the database may have caused.
    let descriptor = prism_take_signals([SIGTERM, SIGINT, SIGUSR1], 3)
    let collector = try Collector(withConnections(options, log), log: log)
    let source = descriptor < 0 ? nil : DispatchSource.makeReadSource(fileDescriptor: descriptor, queue: queue)
    source?.setEventHandler { @Sendable in
      var number: UInt8 = 0
      guard Glibc.read(descriptor, &number, 1) == 1 else { return }
      if Int32(number) == SIGUSR1 {
        Task { _ = StandardStreams.offer(await collector.metrics) }
      } else {
        continuation.yield()
      }
    }
    source?.activate()
    let server = try collector.serve()
    log.info(
      "prism-collector accepts packets",
      ["port": String(server.port), "reader_port": server.readerPort.map { String($0) } ?? "none"])
    if options.isTrial {
      log.warning("--dev: everybody on this machine is an operator; for trying only", [:])
    }
    notifier.ready(status: "accepting packets on port \(server.port)")
    for await _ in stops { break }
    notifier.stopping(status: "finishing requests")
    await server.stop()
    source?.cancel()
    log.info("prism-collector stopped")
    return 0
  } catch let refusal as PostgreSQLSetup.Refusal {
    complain(refusal.description)
    return 78
  } catch let faults as ConfigurationFaults {
    StandardStreams.say(faults.description + "\n")
    return 78
  } catch {
    log.error("prism-collector can't start", ["cause": "\(error)"])
    return 69
  }
}
