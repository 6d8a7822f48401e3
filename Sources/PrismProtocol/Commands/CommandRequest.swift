import PrismBase

/// A command for a device, as a server puts it into the table `prism.command` (docs/records.md, "Commands").
public struct CommandRequest: Equatable, Sendable {
  /// Arguments of a command at most.
  public static let argumentsMax = 16
  /// Bytes of the fields at most, as JSON without white space: the result has room beside them.
  public static let fieldsBytesMax = 4096
  /// Days from now to `expires` at most.
  public static let lifetimeDaysMax = 30
  /// Bytes of a signature.
  public static let signatureBytes = 64

  /// The namespace of the table.
  public var namespace: NamespaceName
  /// The device that carries it out.
  public var deviceID: String
  /// The id of the record. It names the command for ever: a device begins it at most once.
  public var id: RecordID
  /// The command.
  public var name: CommandName
  /// The arguments: at most 16, their names 1 to 64 of `A-Z a-z 0-9 _ -`.
  public var args: [String: CommandValue]
  /// When it must have begun: milliseconds since 1970.
  public var expires: Int64
  /// The Ed25519 signature of `signedBytes`, 64 bytes; nil: it is not signed.
  public var signature: [UInt8]?

  public init(
    namespace: NamespaceName, deviceID: String, id: RecordID, name: CommandName, args: [String: CommandValue] = [:],
    expires: Int64, signature: [UInt8]? = nil
  ) {
    (self.namespace, self.deviceID, self.id, self.name) = (namespace, deviceID, id, name)
    (self.args, self.expires, self.signature) = (args, expires, signature)
  }

  /// A command from the fields of a record. The members that the device writes (`state`, `result`, `stateTime`) are
  /// passed over.
  public init(fields: JSONValue, namespace: NamespaceName, deviceID: String, id: RecordID) throws(CommandFault) {
    guard let members = fields.object else { throw .fieldsNotObject }
    if let other = members.first(where: { !Self.members.contains($0.key) && !CommandAnswer.members.contains($0.key) }) {
      throw .unknownMember(other.key)
    }
    guard let name = fields["name"]?.string, let name = CommandName(rawValue: name) else {
      throw .name(fields["name"]?.string)
    }
    guard case .number(let text) = fields["expires"], let expires = Int64(text), expires > 0 else { throw .expires }
    self.init(
      namespace: namespace, deviceID: deviceID, id: id, name: name, args: try Self.arguments(fields["args"]),
      expires: expires)
    if let text = fields["signature"] {
      guard let bytes = text.string.flatMap({ Base64.decode($0.utf8) }), bytes.count == Self.signatureBytes else {
        throw .signature
      }
      signature = bytes
    }
    try checkSize()
  }

  /// The fields of the record, without the device's members.
  public var fields: JSONValue {
    var members = [JSONValue.Member("name", .string(name.rawValue))]
    if !args.isEmpty {
      members.append(.init("args", .object(args.sorted { $0.key < $1.key }.map { .init($0.key, $0.value.json) })))
    }
    members.append(.init("expires", .int(expires)))
    if let signature { members.append(.init("signature", .string(Base64.encode(signature)))) }
    return .object(members)
  }

  /// The bytes that are signed with the private key of `remote.publicKey`. Each line ends with a line feed. Only the value of
  /// an argument can hold one, and its length is ahead of it. So no two commands have the same bytes.
  public var signedBytes: [UInt8] {
    var text = "prism-command-1\n\(namespace.text)\n\(deviceID)\n\(id.text)\n\(name.rawValue)\n\(expires)\n"
    for (key, value) in args.sorted(by: { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }) {
      let (kind, value) = value.signed
      text += "\(key)\n\(kind)\n\(value.utf8.count)\n\(value)\n"
    }
    return Array(text.utf8)
  }

  /// Checks what a sender must keep to: the size, and that it expires within 30 days.
  /// - Parameter now: milliseconds since 1970.
  public func check(now: Int64) throws(CommandFault) {
    try checkSize()
    if name == .ask { _ = try Question(args) }
    if name == .trigger { _ = try TriggerOrder(args) }
    guard expires > 0 else { throw .expires }
    if expiresTooLate(now: now) { throw .expiresTooLate }
  }

  /// Whether it expires in more than 30 days.
  public func expiresTooLate(now: Int64) -> Bool {
    let (latest, isFar) = now.addingReportingOverflow(Int64(Self.lifetimeDaysMax) * 86_400_000)
    return !isFar && expires > latest
  }

  private func checkSize() throws(CommandFault) {
    let bytes = fields.bytes.count
    guard bytes <= Self.fieldsBytesMax else { throw .tooLarge(bytes: bytes) }
  }

  private static let members: Set = ["name", "args", "expires", "signature"]

  private static func arguments(_ value: JSONValue?) throws(CommandFault) -> [String: CommandValue] {
    guard let value else { return [:] }
    guard let members = value.object else { throw .argsNotObject }
    guard members.count <= argumentsMax else { throw .tooManyArguments(members.count) }
    var arguments: [String: CommandValue] = [:]
    for member in members {
      guard member.key.isName(bytesMax: 64, punctuation: "_-", firstIsAlphanumeric: false),
        arguments[member.key] == nil
      else { throw .argumentName }
      guard let value = CommandValue(member.value) else { throw .argumentValue(member.key) }
      arguments[member.key] = value
    }
    return arguments
  }
}

/// A command that a server may send to a device (docs/records.md, "Commands").
public enum CommandName: String, Sendable, CaseIterable, Comparable {
  /// Uploads now.
  case flush
  /// Stores the findings of `prismctl doctor --json` as a report.
  case doctor
  /// Sets the log level for at most an hour.
  case log
  /// Stores a file as the payload of a report.
  case collect
  /// Starts a systemd unit.
  case run
  /// Lets the namespace's dead letters wait again.
  case requeue
  /// Gives the namespace's dead letters up.
  case drop
  /// Answers a question about kept reports (docs/recorder.md, "Questions"). `ask.allow` permits it, not `commands.allow`.
  case ask
  /// Sets a trigger, or takes it away (docs/recorder.md, "Triggers of a server"). It needs a signature.
  case trigger
  /// Erases waiting and kept reports and dead letters from the device's store, and their bytes from its file. It needs a
  /// signature.
  case erase
  /// Takes the deletions of records of a named store, as `prismctl accept-store` does. It needs a signature.
  case acceptStore = "accept-store"

  public static func < (a: Self, b: Self) -> Bool { a.rawValue < b.rawValue }
}
