public import PrismProtocol

/// Where an effective value comes from.
public enum Origin: Sendable, Equatable, CustomStringConvertible {
  case `default`
  case file(String, line: Int)
  case remote

  public var description: String {
    switch self {
    case .default: "default"
    case .file(let file, let line): "\(file):\(line)"
    case .remote: "remote"
    }
  }
}

/// Of every key that isn't at its default, by its full name.
public struct Origins: Sendable, Equatable {
  /// The origins of the daemon's keys.
  public internal(set) var daemon: [String: Origin] = [:]
  /// The origins of each namespace's keys.
  public internal(set) var namespaces: [NamespaceName: [String: Origin]] = [:]

  public subscript(key: String) -> Origin { daemon[key] ?? .default }
  public subscript(namespace: NamespaceName, key: String) -> Origin { namespaces[namespace]?[key] ?? .default }
}
