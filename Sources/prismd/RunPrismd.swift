import Glibc
import PrismBase
import PrismConfig
import PrismLinux
import PrismPacket
import PrismProtocol

let version = PrismVersion.current

/// The program: what the command line asks for. Answers the exit code.
func runPrismd(_ words: [String], signals: SignalRoute) async -> Int32 {
  let flags: Flags
  do throws(ArgumentFault) { flags = try Flags(words) } catch {
    StandardStreams.say("prismd: \(error.description)\n\(Flags.usage)\n")
    return ExitCode.usage.rawValue
  }
  switch flags.purpose {
  case .help: print(Flags.usage)
  case .version: print("prismd \(version)")
  case .develop: return await develop(in: flags.folder, signals)
  case .checkConfig, .run:
    do throws(ConfigurationFaults) {
      let loaded = try configurationLoader(flags.configPath).load()
      if flags.purpose == .run { return await run(loaded, path: flags.configPath, signals) }
    } catch {
      StandardStreams.say(error.description + "\n")
      return ExitCode.configuration.rawValue
    }
  }
  return ExitCode.ok.rawValue
}

func configurationLoader(_ path: String) -> ConfigurationLoader {
  var environment: [String: String] = [:]
  var entry = environ
  while let text = entry.pointee {
    let parts = String(cString: text).split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
    if parts.count == 2 { environment[String(parts[0])] = String(parts[1]) }
    entry += 1
  }
  return ConfigurationLoader(path: path, environment: environment, identityCheck: ClientIdentity.fault)
}

/// - Parameter onStart: called once the sockets are there.
func run(
  _ loaded: LoadedConfiguration, path: String, _ signals: SignalRoute, log: Logger = Logger(),
  onStart: () -> Void = {}
) async -> Int32 {
  do throws(StartFailure) {
    let daemon = try await Daemon(loaded, configPath: path, signals: signals, log: log)
    onStart()
    await daemon.runUntilStopped()
    return ExitCode.ok.rawValue
  } catch {
    log.error("prismd can't start", ["cause": error.message])
    return error.exitCode.rawValue
  }
}

/// Why the daemon does not start.
struct StartFailure: Error {
  var exitCode: ExitCode
  var message: String
}
