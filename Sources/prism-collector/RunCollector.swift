import CArguments
import Dispatch
import Glibc
import PrismBase
import PrismCollector
import PrismConfig
import PrismProtocol

/// Ends the program unless a collector is to serve, or a command needs threads. Everything that needs no thread is done
/// before there is one: libdispatch ends a program that has no /proc.
/// - Returns: the command; nil: a collector is to serve.
func argumentsOrExit(_ words: [String]) -> (Arguments, CollectorCommand?) {
  do throws(Fault) {
    let arguments = try arguments(words)
    let word = arguments.operands.first
    let command = CollectorCommand.all.first { $0.name == word }
    if let command, case .asking = command.work { return (arguments, command) }
    if arguments.contains("--help") {
      print(Flags.usage)
    } else if arguments.contains("--version") {
      print(PrismVersion.line(of: "prism-collector", commit: String(cString: prism_commit())))
    } else if let word {
      guard let command, case .early(let work) = command.work else { throw CollectorCommand.unknown(word) }
      if let line = try command.line(arguments) { try work(line) }
    } else {
      return (arguments, nil)
    }
    exit(printed(0))
  } catch { exit(error.said) }
}

private func arguments(_ words: [String]) throws(Fault) -> Arguments {
  let command = CollectorCommand.all.first { $0.name == words.first }
  do throws(ArgumentFault) {
    return try Arguments(words, options: Flags.options + (command?.options ?? []), last: "--help")
  } catch {
    throw .usage("\(error.description) (see `prism-collector \(command.map { "\($0.name) " } ?? "")--help`)")
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
func runCollector(
  _ arguments: Arguments, _ command: CollectorCommand?, _ notifier: ServiceNotifier
) async -> Int32 {
  do throws(Fault) {
    if let command {
      guard let line = try command.line(arguments), case .asking(let work) = command.work else { return 0 }
      return try await work(line)
    }
    var flags = try Flags(arguments)
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
    let collector = try Collector(withConnections(options, log), log: log)
    let descriptor = prism_take_signals([SIGTERM, SIGINT, SIGUSR1], 3)
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
