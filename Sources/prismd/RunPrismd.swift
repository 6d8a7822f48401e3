import CArguments
import Glibc
import PrismAdmission
import PrismBase
import PrismConfig
import PrismLinux
import PrismPacket
import PrismProtocol

let version = PrismVersion.current

/// Ends the program unless a daemon is to run. Everything that needs no thread is done before there is one: libdispatch
/// ends a program that has no /proc.
func flagsOrExit(_ words: [String]) -> Flags {
  do throws(Failure) {
    if let line = try Flags.program.read(words) {
      guard case .early(let work) = line.command.work else { return Flags(line) }
      try work(line)
    }
    exit(0)
  } catch {
    if !error.message.isEmpty { StandardStreams.say("prismd: \(error.message)\n") }
    exit(error.exitCode)
  }
}

/// The daemon that the command line asks for. Answers the exit code.
func runPrismd(_ flags: Flags, signals: SignalRoute) async -> ExitCode {
  if let folder = flags.folder { return await develop(in: folder, signals) }
  return await run(flags.configPath, signals)
}

/// - Returns: nil: its faults are said.
func configuration(_ path: String) -> LoadedConfiguration? {
  do throws(ConfigurationFaults) { return try configurationLoader(path).load() } catch {
    let isMissing = access(path, F_OK) != 0 && errno == ENOENT
    let advice = "prismd: name the daemon's file with --config PATH; to try prism without one, run prismd --dev\n"
    StandardStreams.say(error.description + "\n" + (isMissing ? advice : ""))
    return nil
  }
}

func configurationLoader(_ path: String) -> ConfigurationLoader {
  ConfigurationLoader(path: path, environment: ProcessEnvironment.all, identityCheck: ClientIdentity.fault)
}

/// - Parameter path: the daemon's file. - Parameter adding: adds a namespace that a report names; nil: it is refused.
/// - Parameter onStart: called once the sockets are there.
func run(
  _ path: String, _ signals: SignalRoute, adding: NamespaceFiles.Adding? = nil, onStart: () -> Void = {}
) async -> ExitCode {
  let log = Logger()
  do throws(StartFailure) {
    guard let daemon = try await daemon(path, adding, signals, log) else { return .configuration }
    onStart()
    await daemon.runUntilStopped()
    return .ok
  } catch {
    log.error("prismd can't start", ["cause": error.message])
    return error.exitCode
  }
}

/// Nothing but the daemon keeps what the files said: its keys go with the next reload.
private func daemon(
  _ path: String, _ adding: NamespaceFiles.Adding?, _ signals: SignalRoute, _ log: Logger
) async throws(StartFailure) -> Daemon? {
  guard let loaded = configuration(path) else { return nil }
  return try await Daemon(
    loaded, configPath: path, files: NamespaceFiles(folder: loaded.namespaceFolder, add: adding), signals: signals,
    log: log)
}

/// Why the daemon does not start.
struct StartFailure: Error {
  var exitCode: ExitCode
  var message: String
}
