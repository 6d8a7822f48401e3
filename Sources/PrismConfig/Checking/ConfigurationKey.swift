package import PrismProtocol

/// One key of a configuration file. Checking, the JSON Schema, `config show`, the differences of two configurations, the
/// hints for unknown keys and the tables of the documentation all come from these.
package struct ConfigurationKey<Target: Sendable>: Sendable {
  /// With its groups: `tls.caFile`.
  package let name: String
  /// The key in one sentence, for pages and sample files.
  package let meaning: String
  /// `1...30`, `true or false`.
  package let allowed: String
  /// `MiB`, `seconds`; "" for what counts nothing.
  package let unit: String
  /// The JSON Schema of its value.
  package let schema: JSONValue
  /// The default in words, if its value alone would not say it.
  package let defaultNote: String?
  /// Whether a map without this key is a fault.
  package let isRequired: Bool
  /// Whether remote configuration may set it.
  package let remote: RemotePermission
  /// False: a change takes a restart of prismd. A collector reads all keys at its start alone.
  package let isLive: Bool
  let read: @Sendable (YAMLNode, inout Target, inout Checker) -> Void
  let show: @Sendable (Target) -> JSONValue
  /// Whether two targets are equal in this key, including the content of a named file, which is not shown.
  let isSame: @Sendable (Target, Target) -> Bool

  init<Value: Equatable>(
    _ name: String, _ form: ValueForm<Value>, at path: any WritableKeyPath<Target, Value> & Sendable,
    default note: String? = nil, isRequired: Bool = false, remote: RemotePermission = .never, isLive: Bool = true,
    _ meaning: String
  ) {
    (self.name, self.meaning, self.allowed, self.unit) = (name, meaning, form.allowed, form.unit)
    (self.schema, self.defaultNote, self.isRequired) = (form.schema, note, isRequired)
    (self.remote, self.isLive) = (remote, isLive)
    read = { node, target, checker in
      if let value = form.read(node, name, &checker) { target[keyPath: path] = value }
    }
    show = { form.show($0[keyPath: path]) }
    isSame = { $0[keyPath: path] == $1[keyPath: path] }
  }

  /// A key that no map goes without: the target's value before it is never used.
  init<Value: Equatable>(
    _ name: String, _ form: ValueForm<Value>, required path: any WritableKeyPath<Target, Value> & Sendable,
    _ meaning: String
  ) {
    self.init(name, form, at: path, default: "none", isRequired: true, meaning)
  }

  /// A key whose value may be absent.
  init<Value: Equatable>(
    _ name: String, _ form: ValueForm<Value>, optional path: any WritableKeyPath<Target, Value?> & Sendable,
    default note: String? = "none", remote: RemotePermission = .never, isLive: Bool = true, _ meaning: String
  ) {
    self.init(name, form.optional, at: path, default: note, remote: remote, isLive: isLive, meaning)
  }
}

/// Whether remote configuration may set a key.
package enum RemotePermission: Sendable {
  /// Keys, files, accounts, sockets: never.
  case never
  /// Only where `remote.allow` names it.
  case ifListed
  /// Keys that can shrink stored data: with `remote.publicKey` like `standard`, without it only if `remote.allow` names
  /// them.
  case ifSigned
  /// The switches and limits: unless `remote.allow` leaves it out.
  case standard
}
