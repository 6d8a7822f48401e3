import Glibc
import PrismBase
import PrismConfig
import PrismControl
import PrismProtocol

/// Whether the files can be taken, and who may read and write the keys.
struct ConfigurationCheck {
  let findings: [Finding]
  /// nil: there are faults.
  let loaded: LoadedConfiguration?

  private static let faultsShown = 10

  init(_ path: String) {
    let loader = Invocation.configurationLoader(path)
    do throws(ConfigurationFaults) {
      let loaded = try loader.load()
      let count = loaded.snapshot.namespaces.count
      let found = Finding("configuration", .ok, "\(path) and its namespaces (\(count)) have no fault")
      let snapshot = loaded.snapshot
      findings =
        [found] + snapshot.daemon.keys.map(Self.key) + Self.keyless(snapshot) + Self.unsigned(snapshot.daemon.commands)
      self.loaded = loaded
    } catch {
      loaded = nil
      findings = error.faults.prefix(Self.faultsShown).map {
        Finding("configuration", .fault, $0.description, advice: Self.advice($0))
      }
    }
  }

  private static func advice(_ fault: ConfigurationFault) -> String {
    fault.key == "file"
      ? "is it the right path (--config), and may you read it?" : "mend it, then `prismctl config check` and `reload`"
  }

  /// No other user may be able to put another key in its place. If others can read it, that is a fault of the file
  /// already.
  private static func key(_ key: DaemonConfiguration.Key) -> Finding {
    var facts = stat()
    guard stat(key.file, &facts) == 0 else {
      return Finding(
        "key \(key.id)", .fault, "\(key.file): \(Files.reason())", advice: "put it back, or reload without it")
    }
    let mode = FileModes.text(facts.st_mode)
    guard facts.st_mode & 0o022 == 0 else {
      return Finding(
        "key \(key.id)", .fault, "\(key.file) can be written by others (mode \(mode))",
        advice: "chmod go-w \(key.file)")
    }
    return Finding("key \(key.id)", .ok, "\(key.file) has mode \(mode)")
  }

  /// The collector can send any of them.
  private static func unsigned(_ commands: DaemonConfiguration.Commands) -> [Finding] {
    guard commands.isOn else { return [] }
    let asking = commands.askTypes.isEmpty ? [] : [CommandName.ask]
    let names = (commands.allow.sorted() + asking).map(\.rawValue).joined(separator: ", ")
    guard commands.publicKey == nil else { return [Finding("commands", .ok, "signed ones are taken: \(names)")] }
    return [
      Finding(
        "commands", .warning, "\(names) are taken from the collector without a signature",
        advice: "set remote.publicKey, and sign commands (docs/records.md)")
    ]
  }

  private static func keyless(_ snapshot: Snapshot) -> [Finding] {
    guard snapshot.daemon.keys.isEmpty, snapshot.namespaces.values.contains(where: { $0.url != nil }) else { return [] }
    return [
      Finding(
        "keys", .fault, "none is configured: nothing can be sent",
        advice: "`prismctl keys new FILE`, name it under `keys`, and give the same to the collector")
    ]
  }
}

enum FileModes {
  /// `0640`
  static func text(_ mode: mode_t) -> String {
    let digits = String(mode & 0o7777, radix: 8)
    return String(repeating: "0", count: max(0, 4 - digits.count)) + digits
  }
}
