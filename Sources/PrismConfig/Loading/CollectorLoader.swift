/// Reads a collector's file, and lays the flags of its command line over it.
public struct CollectorLoader: Sendable {
  /// A flag that says what a key of the file says.
  public struct Flag: Sendable {
    /// As faults name it: `--token-file`.
    let name: String
    /// The key's full name: `tokenFile`.
    public let key: String
    let value: Value

    /// A text, or an entry that is added to a list.
    public enum Value: Sendable {
      case text(String)
      case entry(String)
      case key(id: String, file: String)
    }

    /// The flag `name` for the key `key`.
    public init(_ name: String, key: String, _ value: Value) { (self.name, self.key, self.value) = (name, key, value) }
  }

  private let path: String?
  private let flags: [Flag]
  private let environment: [String: String]
  private let checks: CollectorChecks

  /// - Parameters:
  ///   - path: nil: there is no file.
  ///   - environment: for `${NAME}`, and `CREDENTIALS_DIRECTORY`.
  public init(path: String?, flags: [Flag], environment: [String: String], checks: CollectorChecks) {
    (self.path, self.flags, self.environment, self.checks) = (path, flags, environment, checks)
  }

  /// Reads the file and every file that it names, and starts nothing. Blocks on the disk.
  /// - Throws: every fault, by line; those of flags come last, and have the flag for a file.
  public func load() throws(ConfigurationFaults) -> CollectorConfiguration {
    var run = CollectorLoadingRun(path: path, checks: checks)
    if let path { run.read(path, environment) }
    for flag in flags { run.read(flag) }
    run.settle()
    guard run.faults.isEmpty else { throw ConfigurationFaults(run.sortedFaults) }
    return run.configuration
  }
}
