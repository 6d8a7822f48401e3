import PrismBase
public import PrismProtocol

/// Why headers are those of no packet.
public struct PacketHeaderFault: Error, Sendable, Equatable, CustomStringConvertible {
  /// In lower case.
  public let name: String
  /// Whether the header is missing; else its value is wrong.
  public let isMissing: Bool

  public var description: String { "the header \(name) is \(isMissing ? "missing" : "not one that prism sends")" }
}

extension PacketHeaders {
  /// The `Content-Type` of the packet.
  public var contentType: String { Self.contentType(kind) }

  /// The `Content-Type` of packets of this kind.
  public static func contentType(_ kind: RowKind) -> String { kind.contentType }

  /// Every header of the POST but `Prism-Mac` and `Authorization`.
  public var fields: [(name: String, value: String)] {
    var fields = [
      (name: "Content-Type", value: contentType), ("Prism-Version", Self.version), ("Prism-Device-Id", deviceID),
      ("Prism-Namespace", namespace.text), ("Prism-Packet-Id", packetID.description),
      ("Prism-Item-Count", String(itemCount)), ("Prism-Cipher", format.cipher.rawValue),
      ("Prism-Key-Id", format.keyID), ("Prism-Encoding", format.encoding.rawValue),
    ]
    if let sentTime { fields.append(("Prism-Sent-Time", String(sentTime))) }
    if let dependsOn { fields.append(("Prism-Depends-On", dependsOn.description)) }
    if !ledgerField.isEmpty { fields.append(("Prism-Ledger", ledgerField)) }
    if let id = format.dictionaryID { fields.append(("Prism-Dictionary", String(id))) }
    if format.form != .rows { fields.append(("Prism-Form", format.form.rawValue)) }
    return fields
  }

  /// The value of `Prism-Ledger`; empty without one.
  var ledgerField: String {
    guard pendingCount > 0 else { return ledger }
    return (ledger.isEmpty ? "" : ledger + ";") + "\(Self.pendingMember)=\(pendingCount)"
  }

  private static let pendingMember = "pending"

  /// Takes `Prism-Ledger` apart; nil if `pending` is not the last member, or no number that is sent.
  private static func accounts(_ field: String) -> (ledger: String, pendingCount: Int)? {
    guard (1...1024).contains(field.utf8.count), field.isVisibleASCII else { return nil }
    var members = field.split(separator: ";", omittingEmptySubsequences: false)
    guard let index = members.firstIndex(where: { $0.prefix { $0 != "=" } == pendingMember }) else { return (field, 0) }
    let number = String(members.removeLast().dropFirst(pendingMember.utf8.count + 1))
    guard index == members.count, let count = FieldReader.number(number, isAllowed: { $0 > 0 }) else { return nil }
    return (members.joined(separator: ";"), count)
  }

  /// - Parameter kind: from the POST's path.
  /// - Parameter values: all values of the header with this name, which is in lower case.
  /// - Throws: for the first header that is missing, repeated, or not in the form of `fields`. An upper-case digit of
  ///   an id would otherwise be an unnoticed change.
  public init(kind: RowKind, _ values: @escaping (String) -> [String]) throws(PacketHeaderFault) {
    let reader = FieldReader(values: values)
    let accounts = try reader.optional("prism-ledger", Self.accounts) ?? (ledger: "", pendingCount: 0)
    _ = try reader.required("content-type") { $0 == Self.contentType(kind) ? $0 : nil }
    _ = try reader.required("prism-version") { $0 == Self.version ? $0 : nil }
    self.init(
      deviceID: try reader.required("prism-device-id", FieldReader.deviceID),
      namespace: try reader.required("prism-namespace") { NamespaceName($0) },
      packetID: try reader.required("prism-packet-id", FieldReader.packetID), kind: kind,
      dependsOn: try reader.optional("prism-depends-on", FieldReader.packetID),
      itemCount: try reader.required("prism-item-count") { FieldReader.number($0) { $0 > 0 } },
      ledger: accounts.ledger, pendingCount: accounts.pendingCount,
      sentTime: try reader.optional("prism-sent-time") { FieldReader.number($0) { $0 >= 0 } },
      format: BlockFormat(
        cipher: try reader.required("prism-cipher") { Cipher(rawValue: $0) },
        keyID: try reader.required("prism-key-id") { $0.isEmpty ? nil : $0 },
        encoding: try reader.required("prism-encoding") { PacketEncoding(rawValue: $0) },
        dictionaryID: try reader.optional("prism-dictionary") { FieldReader.number($0) { $0 > 0 } },
        form: try reader.optional("prism-form") { Self.form($0, of: kind) } ?? .rows))
  }

  /// Rows are not named, and packets of metas alone have columns.
  private static func form(_ text: String, of kind: RowKind) -> PacketForm? {
    PacketForm(rawValue: text).flatMap { $0 == .columns && kind == .meta ? $0 : nil }
  }
}

/// Reads the values of headers, each in the one form in which it is sent.
struct FieldReader {
  let values: (String) -> [String]

  static func packetID(_ text: String) -> PacketID? {
    PacketID(text).flatMap { $0.description == text ? $0 : nil }
  }

  static func number<Number: FixedWidthInteger>(_ text: String, isAllowed: (Number) -> Bool) -> Number? {
    Number(text).flatMap { String($0) == text && isAllowed($0) ? $0 : nil }
  }

  /// An id of a device: 1 to 256 visible ASCII characters.
  static func deviceID(_ text: String) -> String? {
    (1...256).contains(text.utf8.count) && text.isVisibleASCII ? text : nil
  }

  func required<Value>(_ name: String, _ parse: (String) -> Value?) throws(PacketHeaderFault) -> Value {
    guard let value = try optional(name, parse) else { throw PacketHeaderFault(name: name, isMissing: true) }
    return value
  }

  func optional<Value>(_ name: String, _ parse: (String) -> Value?) throws(PacketHeaderFault) -> Value? {
    let found = values(name)
    guard !found.isEmpty else { return nil }
    guard found.count == 1, let value = parse(found[0]) else { throw PacketHeaderFault(name: name, isMissing: false) }
    return value
  }
}
