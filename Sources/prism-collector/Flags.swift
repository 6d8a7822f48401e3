import Glibc
import PrismBase
import PrismCollector
import PrismConfig
import PrismProtocol

/// The command line, and the files that it names.
struct Flags {
  static let options = [
    ArgumentOption(
      "--config", "PATH",
      """
      a file with all keys (docs/collector-reference.md); flags count first. Without it and without
      --key: that of a `prismd --dev` that runs, else /etc/prism/collector.yaml
      """),
    ArgumentOption("--listen", "ADDR:PORT", "where packets are taken (127.0.0.1:8480); port 0 takes any that is free"),
    ArgumentOption(
      "--key", "ID=FILE", "a key of the senders: 32 or 64 hexadecimal digits, not readable by others",
      isRepeatable: true),
    ArgumentOption(
      "--seal-key", "FILE", "a private key (prismctl keys new --seal) that opens sealed payloads",
      isRepeatable: true),
    ArgumentOption("--state", "DIR", "the folder of the database, made when it is missing"),
    ArgumentOption(
      "--store", "URI",
      """
      postgresql://USER@HOST/DATABASE instead of a database in DIR (docs/collector.md); the password
      is in PGPASSFILE
      """),
    ArgumentOption("--token-file", "FILE", "bearer tokens, one a line; every sender must give one"),
    ArgumentOption(
      "--reader-listen", "ADDR:PORT", "where reports are read, and the page is served (127.0.0.1:8081)"),
    ArgumentOption(
      "--reader-token-file", "FILE",
      "bearer tokens of readers; without any token --reader-listen serves this machine only"),
    ArgumentOption(
      "--operator-token-file", "FILE", "bearer tokens of operators, who read and change"),
    ArgumentOption(
      "--remote-config", "DIR",
      "namespace files that are served as remote configuration (docs/remote-configuration.md)"),
    ArgumentOption("--signing-key", "FILE", "an Ed25519 key, PEM, that signs it"),
    ArgumentOption(
      "--dev", nil, "for trying, without tokens: every user of this machine is an operator, who reads and changes"),
    ArgumentOption("--print", nil, "each new report as one line of JSON on standard output"),
  ]

  var options: CollectorOptions
  /// `--print`.
  let prints: Bool

  /// Keys of the file that flags stand for.
  private static let keys = [
    "--listen": "listen", "--state": "state", "--store": "store", "--token-file": "tokenFile",
    "--reader-listen": "reader.listen", "--reader-token-file": "readerTokenFile",
    "--operator-token-file": "operatorTokenFile", "--remote-config": "remoteConfig", "--signing-key": "signingKey",
  ]

  private static func standardPath() throws(Failure) -> String {
    let paths: [String] = [DevelopmentFolder.running?.path, "/etc/prism"].compactMap { folder in
      folder.map { $0 + "/collector.yaml" }
    }
    // A folder without rights is no missing file: reading it says so.
    guard let path = paths.first(where: { access($0, F_OK) == 0 || errno == EACCES }) else {
      throw .usage(
        "there is no /etc/prism/collector.yaml: name the collector's file with --config PATH (--help: all flags)")
    }
    return path
  }

  /// - Parameter makesState: whether a state folder is made where it is missing; else it was mistyped.
  /// - Throws: 64 for the command line, 78 for every fault of the configuration, 66 and 73 for the folder.
  init(_ given: [Arguments.Given], makesState: Bool = true) throws(Failure) {
    var path: String?
    var flags: [CollectorLoader.Flag] = []
    var (prints, isTrial) = (false, false)
    for option in given {
      let value = option.value ?? ""
      switch option.name {
      case "--print": prints = true
      case "--dev": isTrial = true
      case "--config": path = value
      case "--seal-key": flags.append(.init(option.name, key: "sealKeys", .entry(value)))
      case "--key":
        let parts = value.split(separator: "=", maxSplits: 1).map(String.init)
        guard parts.count == 2 else { throw .usage("--key: write ID=FILE") }
        flags.append(.init(option.name, key: "keys", .key(id: parts[0], file: parts[1])))
      default:
        guard let key = Self.keys[option.name] else { continue }  // it is the command's
        flags.append(.init(option.name, key: key, .text(value)))
      }
    }
    self.prints = prints
    if path == nil, !flags.contains(where: { $0.key == "keys" }) { path = try Self.standardPath() }
    let configuration: CollectorConfiguration
    do throws(ConfigurationFaults) {
      configuration = try CollectorLoader(
        path: path, flags: flags, environment: ProcessEnvironment.all, checks: .libraries
      ).load()
    } catch { throw Failure(Failure.configuration, "the configuration has faults\n\(error.description)") }
    guard let options = CollectorOptions(configuration) else {
      throw Failure(Failure.configuration, "a key or the address of the store is not what it was when it was checked")
    }
    guard !isTrial || options.readerTokenFile == nil && options.operatorTokenFile == nil else {
      throw .usage("--dev: there are tokens of readers; leave one of the two out")
    }
    self.options = options
    self.options.isTrial = isTrial
    guard makesState || options.store != nil || access(options.state, F_OK) == 0 || errno != ENOENT else {
      throw Failure(Failure.noInput, "--state: \(options.state.printable): there is no such folder")
    }
    do throws(StateFolder.Fault) { try StateFolder.prepare(options.state) } catch {
      throw Failure(error.isMode ? Failure.configuration : Failure.cannotCreate, "--state: \(error.description)")
    }
  }
}
