public import PrismProtocol

/// The remote configuration of one namespace: an entry of `namespaces` (docs/remote-configuration.md).
public struct RemoteNamespace: Sendable, Equatable {
  /// The namespace.
  public let name: NamespaceName
  /// `delFlag: 1`: what was said of it before is taken back.
  public let isRemoved: Bool
  /// Everything but `name` and `delFlag`, not checked yet.
  public let keys: [JSONValue.Member]

  public init(name: NamespaceName, isRemoved: Bool = false, keys: [JSONValue.Member]) {
    (self.name, self.isRemoved, self.keys) = (name, isRemoved, keys)
  }

  /// - Throws: one fault; whether the keys may be set, and to what, is checked when they are applied.
  public init(parsing json: JSONValue) throws(ConfigurationFaults) {
    guard let members = json.object else { throw .ofRemote("namespaces", "must be a list of maps") }
    guard let text = json["name"]?.string, let name = NamespaceName(text) else {
      throw .ofRemote("name", "must be a namespace's name: 1 to 64 of A-Z a-z 0-9 _ -, the first a letter or digit")
    }
    switch json["delFlag"] {
    case nil, .number("0"): isRemoved = false
    case .number("1"): isRemoved = true
    default: throw .ofRemote("\(name).delFlag", "must be 0 or 1")
    }
    self.name = name
    keys = members.filter { $0.key != "name" && $0.key != "delFlag" }
  }
}
