public import PrismProtocol

/// The question for the server's changes of one table (docs/records.md, "The question").
public struct DownQuestion: Sendable, Equatable {
  /// Where a collector answers it, with GET.
  public static let path = RowKind.records.path

  /// The device that asks.
  public var deviceID: String
  /// The namespace of the table.
  public var namespace: NamespaceName
  /// The table to bring up to date.
  public var table: RecordTableName
  /// Operations behind this one are asked for; nil: all records.
  public var after: Int64?
  /// The device's last packet of records that was accepted. A store that lacks it knows less than it did, and says so.
  public var lastPacket: PacketID?
  /// A new one for each question: the answer is bound to it.
  public var packetID: PacketID
  /// The cipher and the id of the key that the answer must have.
  public var cipher: Cipher
  public var keyID: String

  public init(
    deviceID: String, namespace: NamespaceName, table: RecordTableName, after: Int64?,
    lastPacket: PacketID? = nil, packetID: PacketID, cipher: Cipher, keyID: String
  ) {
    (self.deviceID, self.namespace, self.table) = (deviceID, namespace, table)
    (self.after, self.lastPacket) = (after, lastPacket)
    (self.packetID, self.cipher, self.keyID) = (packetID, cipher, keyID)
  }

  /// Path and query, to follow the receiver's address.
  public var target: String {
    "\(Self.path)?namespace=\(namespace)&table=\(table)" + (after.map { "&after=\($0)" } ?? "")
      + (lastPacket.map { "&last=\($0)" } ?? "")
  }

  /// Every header but `Authorization` and `Prism-Mac`.
  public var fields: [(name: String, value: String)] {
    [
      ("Prism-Version", PacketHeaders.version), ("Prism-Device-Id", deviceID),
      ("Prism-Packet-Id", packetID.description), ("Prism-Cipher", cipher.rawValue), ("Prism-Key-Id", keyID),
      ("Prism-Accept", PacketEncoding.zstd.rawValue),
    ]
  }

  /// - Parameter query: the value of a parameter; nil: it is missing.
  /// - Parameter values: all values of the header with this name, which is in lower case.
  /// - Throws: for the first that is missing, repeated, or not in the form that is sent. A parameter's name is that of
  ///   the query.
  public init(
    query: @escaping (String) -> String?, _ values: @escaping (String) -> [String]
  ) throws(PacketHeaderFault) {
    let parameters = FieldReader { name in query(name).map { [$0] } ?? [] }
    let reader = FieldReader(values: values)
    _ = try reader.required("prism-version") { $0 == PacketHeaders.version ? $0 : nil }
    self.init(
      deviceID: try reader.required("prism-device-id", FieldReader.deviceID),
      namespace: try parameters.required("namespace") { NamespaceName($0) },
      table: try parameters.required("table") { RecordTableName($0) },
      after: try parameters.optional("after") { FieldReader.number($0) { $0 >= 0 } },
      lastPacket: try parameters.optional("last", FieldReader.packetID),
      packetID: try reader.required("prism-packet-id", FieldReader.packetID),
      cipher: try reader.required("prism-cipher") { Cipher(rawValue: $0) },
      keyID: try reader.required("prism-key-id") { $0.isEmpty ? nil : $0 })
  }
}

extension DownQuestion: ProvenQuestion {
  package static var purpose: String { "records" }

  package var parameters: [(name: String, value: String)] {
    let parameters: [(name: String, value: String?)] = [
      ("deviceId", deviceID), ("packetId", packetID.description), ("namespace", namespace.text), ("table", table.text),
      ("after", after.map { String($0) }), ("last", lastPacket?.description),
    ]
    return parameters.compactMap { name, value in value.map { (name, $0) } }
  }
}
