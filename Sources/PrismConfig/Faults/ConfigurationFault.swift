import PrismProtocol

/// One thing that is wrong in a configuration. No key, token or environment value is ever in it.
public struct ConfigurationFault: Sendable, Equatable, CustomStringConvertible {
  /// As it was named on the command line or found below it; `remote` for remote configuration.
  public let file: String
  /// From 1; 0 where no line exists (remote configuration).
  public let line: Int
  /// The key by its full name, `tls.caFile` or `monitorList[0].type`; `YAML` or `file` for faults of the whole.
  public let key: String
  /// The rule that is broken, and the allowed values.
  public let message: String

  /// `FILE:LINE: KEY: what is wrong, what is allowed`
  public var description: String {
    (line > 0 ? "\(file):\(line): \(key): \(message)" : "\(file): \(key): \(message)").printable
  }
}

/// Everything that is wrong, not only the first: the daemon's file first, then the namespaces' by name; within a file by
/// line. Never empty.
public struct ConfigurationFaults: Error, Sendable, Equatable, CustomStringConvertible {
  /// All faults of the files, in the order of their lines.
  public let faults: [ConfigurationFault]
  /// Every file that was looked at, as absolute paths: a change of one may mend it.
  public let files: [String]
  public init(_ faults: [ConfigurationFault], files: [String] = []) { (self.faults, self.files) = (faults, files) }

  /// One fault of an answer of remote configuration.
  static func ofRemote(_ key: String, _ message: String) -> ConfigurationFaults {
    ConfigurationFaults([ConfigurationFault(file: "remote", line: 0, key: key, message: message)])
  }

  /// One a line.
  public var description: String { faults.map(\.description).joined(separator: "\n") }
}
