import PrismBase
import PrismProtocol

/// Reads the daemon's file and the namespaces' beside it (docs/configuration.md, "How a file is read").
public struct ConfigurationLoader: Sendable {
  private let path: String
  private let environment: [String: String]
  private let identityCheck: ClientIdentityCheck?

  /// - Parameters:
  ///   - path: of the daemon's own file.
  ///   - environment: for `${NAME}`, and `CREDENTIALS_DIRECTORY`.
  ///   - identityCheck: nil leaves open whether client certificates and their keys belong together.
  public init(path: String, environment: [String: String], identityCheck: ClientIdentityCheck?) {
    (self.path, self.environment, self.identityCheck) = (path, environment, identityCheck)
  }

  /// Reads everything, and starts nothing. Blocks: on the disk, and on the system's users and groups.
  /// - Throws: every fault of every file.
  public func load() throws(ConfigurationFaults) -> LoadedConfiguration {
    var run = LoadingRun(path: path, environment: environment, identityCheck: identityCheck)
    run.loadDaemon()
    run.loadNamespaces()
    guard run.faults.isEmpty else { throw ConfigurationFaults(run.faults, files: run.files) }
    return run.result
  }
}
