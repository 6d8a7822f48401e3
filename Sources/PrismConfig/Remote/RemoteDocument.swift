public import PrismProtocol

/// The answer of a server of remote configuration, without its envelope: `{"namespaces":[…],"updateTime":…,"full":…}`
/// (docs/remote-configuration.md).
public struct RemoteDocument: Sendable, Equatable {
  /// The most entries in one document.
  public static let namespacesMax = 10_000
  private static let valuesMax = 250_000
  private static let known: Set = ["namespaces", "updateTime", "full", "version", "since", "issueTime", "expireTime"]

  /// An entry for each namespace.
  public var namespaces: [RemoteNamespace]
  /// The server's own count, given back to it with the next question; 0 or more.
  public var updateTime: Int64
  /// In an answer to "what changed since": too much; ask for everything.
  public var isFull: Bool
  /// Rises with every change of what the server says; a signed document needs it.
  public var version: Int64?
  /// The `updateTime` of the question that this answers: a signed answer can't be passed off as that to another.
  public var since: Int64?
  /// When it was signed, and until when it may be taken: milliseconds since 1970. A signed document needs `expireTime`.
  public var issueTime: Int64?, expireTime: Int64?
  /// The store whose count `updateTime` is, of the header beside the document; nil: the server names no store.
  public var store: String?
  /// The header's name.
  public static let storeHeader = "Prism-Config-Store"

  public init(
    namespaces: [RemoteNamespace], updateTime: Int64, isFull: Bool, version: Int64? = nil, since: Int64? = nil,
    issueTime: Int64? = nil, expireTime: Int64? = nil
  ) {
    (self.namespaces, self.updateTime, self.isFull) = (namespaces, updateTime, isFull)
    (self.version, self.since, self.issueTime, self.expireTime) = (version, since, issueTime, expireTime)
  }

  /// The number that identifies it in questions and answers: its version, or else its time.
  public var number: Int64 { version ?? updateTime }

  /// - Throws: what is wrong with the frame; whether keys may be set, and to what, is checked when they are applied.
  public init(parsing bytes: [UInt8]) throws(ConfigurationFaults) {
    let json: JSONValue
    do { json = try JSONValue(parsing: bytes, valuesMax: Self.valuesMax) } catch {
      throw .ofRemote("data", "is \(error)")
    }
    guard let members = json.object else { throw .ofRemote("data", "must be a map") }
    if let other = members.first(where: { !Self.known.contains($0.key) }) {
      throw .ofRemote(other.key.shownInFault, "is unknown; remote configuration sets keys of namespaces only")
    }
    guard let updateTime = try Self.number(json, "updateTime") else {
      throw .ofRemote("updateTime", "is missing, must be a whole number, 0 or more")
    }
    switch json["full"] {
    case nil, .bool(false): isFull = false
    case .bool(true): isFull = true
    default: throw .ofRemote("full", "must be true or false")
    }
    self.updateTime = updateTime
    (version, since) = (try Self.number(json, "version"), try Self.number(json, "since"))
    (issueTime, expireTime) = (try Self.number(json, "issueTime"), try Self.number(json, "expireTime"))
    namespaces = try Self.namespaces(json["namespaces"])
  }

  private static func namespaces(_ json: JSONValue?) throws(ConfigurationFaults) -> [RemoteNamespace] {
    guard let entries = json?.array else { throw .ofRemote("namespaces", "must be a list of maps") }
    guard entries.count <= namespacesMax else {
      throw .ofRemote("namespaces", "has \(entries.count) entries, must have at most \(namespacesMax)")
    }
    var result: [RemoteNamespace] = []
    var names: Set<NamespaceName> = []
    for entry in entries {
      let namespace = try RemoteNamespace(parsing: entry)
      guard names.insert(namespace.name).inserted else { throw .ofRemote("\(namespace.name)", "occurs twice") }
      result.append(namespace)
    }
    return result
  }

  private static func number(_ json: JSONValue, _ key: String) throws(ConfigurationFaults) -> Int64? {
    guard let value = json[key], !value.isNull else { return nil }
    guard let number = value.int, number >= 0 else { throw .ofRemote(key, "must be a whole number, 0 or more") }
    return Int64(number)
  }

  /// As it goes into the envelope.
  public var json: JSONValue {
    let numbers = [
      ("version", version), ("since", since), ("issueTime", issueTime), ("expireTime", expireTime),
    ].compactMap { key, number in number.map { JSONValue.Member(key, .int($0)) } }
    return .object(
      [
        .init("namespaces", .array(namespaces.map(\.json))), .init("updateTime", .int(updateTime)),
        .init("full", .bool(isFull)),
      ] + numbers)
  }
}

extension RemoteNamespace {
  /// The document as it is sent.
  public var json: JSONValue {
    .object([.init("name", .string(name.text)), .init("delFlag", .int(isRemoved ? 1 : 0))] + keys)
  }
}

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
