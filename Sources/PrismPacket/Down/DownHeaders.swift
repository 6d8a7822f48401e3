public import PrismProtocol

/// The headers of an answer with a table's changes (docs/records.md, "The answer to a question").
///
/// All that means something is authenticated with the body: an answer to another question, for another device or table, or
/// with another number of lines does not open.
public struct DownHeaders: Sendable, Equatable {
  /// The kind in the context.
  public static let kindName = "records-down"
  /// The `Content-Type` of the answer.
  public static let contentType = "application/vnd.prism.\(kindName)"
  /// Names the number of a namespace's newest operation, also in the answer to a packet of records.
  public static let versionName = "Prism-Records-Version"

  /// The device that asked.
  public var deviceID: String
  /// The namespace of the table.
  public var namespace: NamespaceName
  /// The id of the question.
  public var packetID: PacketID
  /// The table that was asked for.
  public var table: RecordTableName
  /// Lines of the block; 1 or more.
  public var lineCount: Int
  /// When the answer began by the collector's clock: milliseconds since 1970.
  public var sentTime: Int64
  /// The store lacks the last packet that the question names.
  public var isChainBroken: Bool
  /// Cipher, key and compression of the block; without a dictionary.
  public var format: BlockFormat

  /// The answer to `question`.
  /// - Parameter lineCount: 1 or more.
  public init(
    to question: DownQuestion, lineCount: Int, sentTime: Int64, isChainBroken: Bool = false, encoding: PacketEncoding
  ) {
    (deviceID, namespace, packetID) = (question.deviceID, question.namespace, question.packetID)
    (table, self.lineCount, self.sentTime) = (question.table, lineCount, sentTime)
    self.isChainBroken = isChainBroken
    format = BlockFormat(cipher: question.cipher, keyID: question.keyID, encoding: encoding)
  }

  /// The context that binds the block to the question: a line each, with the table in the place of `Prism-Depends-On`, and
  /// the value of `Prism-Chain` in that of the ledger.
  public var context: [UInt8] {
    let lines = [
      "prism2", deviceID, namespace.text, packetID.description, Self.kindName, table.text, String(lineCount),
      isChainBroken ? Self.broken : "",
      String(sentTime),
    ]
    return Array(lines.map { $0 + "\n" }.joined().utf8)
  }

  /// Every header of the answer but `Prism-Mac` and `Prism-Records-Version`.
  public var fields: [(name: String, value: String)] {
    [
      ("Content-Type", Self.contentType), ("Prism-Version", PacketHeaders.version), ("Prism-Device-Id", deviceID),
      ("Prism-Namespace", namespace.text), ("Prism-Packet-Id", packetID.description),
      ("Prism-Item-Count", String(lineCount)), ("Prism-Sent-Time", String(sentTime)),
      ("Prism-Cipher", format.cipher.rawValue), ("Prism-Key-Id", format.keyID),
      ("Prism-Encoding", format.encoding.rawValue),
    ] + (isChainBroken ? [(Self.chainName, Self.broken)] : [])
  }

  private static let (chainName, broken) = ("Prism-Chain", "broken")

  /// Reads the headers of the answer to `question`.
  /// - Parameter values: all values of the header with this name, which is in lower case.
  /// - Throws: for the first header that is missing, repeated, not in the form of `fields`, or of another question. A
  ///   weaker cipher or another key than the one that was asked for is of another question.
  public init(
    answering question: DownQuestion, _ values: @escaping (String) -> [String]
  ) throws(PacketHeaderFault) {
    let reader = FieldReader(values: values)
    let asked = DownHeaders(to: question, lineCount: 1, sentTime: 0, encoding: .gzip)
    for (name, value) in asked.fields where !Self.free.contains(name) {
      _ = try reader.required(name.lowercased()) { $0 == value ? $0 : nil }
    }
    self.init(
      to: question, lineCount: try reader.required("prism-item-count") { FieldReader.number($0) { $0 > 0 } },
      sentTime: try reader.required("prism-sent-time") { FieldReader.number($0) { $0 >= 0 } },
      isChainBroken: try reader.optional(Self.chainName.lowercased()) { $0 == Self.broken ? true : nil } ?? false,
      encoding: try reader.required("prism-encoding") { PacketEncoding(rawValue: $0) })
  }

  /// Headers that the collector chooses; the others are as the question says.
  private static let free = ["Prism-Item-Count", "Prism-Sent-Time", "Prism-Encoding"]
}
