/// The answer to a packet of operations, beside its receipt: the ids that the server gave, and the operations that it
/// refused (docs/records.md, "The answer").
public struct RecordReceipt: Equatable, Sendable {
  /// An operation that the server refused for good.
  public struct Refused: Equatable, Sendable {
    /// The operation's `op`.
    public var op: String
    /// The server's own words, cut at 512 bytes.
    public var message: String
    public init(op: String, message: String) { (self.op, self.message) = (op, message) }
  }

  /// The server's id of each record, by table and local id.
  public var ids: [RecordTableName: [RecordID: RecordID]]
  /// The others were carried out.
  public var refused: [Refused]
  /// The store that took the packet.
  public var store: StoreReceipt

  public init(
    ids: [RecordTableName: [RecordID: RecordID]] = [:], refused: [Refused] = [],
    store: StoreReceipt = StoreReceipt(store: nil, isChainBroken: false)
  ) {
    (self.ids, self.refused, self.store) = (ids, refused, store)
  }

  /// Reads the body of an answer. A member of another kind is ignored: the receipt alone settles the packet.
  public init(_ body: JSONValue) {
    self.init(store: StoreReceipt(body))
    for table in body["ids"]?.object ?? [] {
      guard let name = RecordTableName(table.key) else { continue }
      for member in table.value.object ?? [] {
        guard let id = RecordID(member.key), let given = member.value.string.flatMap({ RecordID($0) }) else { continue }
        ids[name, default: [:]][id] = given
      }
    }
    for item in body["refused"]?.array ?? [] {
      guard let op = item["op"]?.string else { continue }
      refused.append(Refused(op: op, message: (item["message"]?.string ?? "").cut(atBytes: 512)))
    }
  }

  /// The ids and the refusals as members of the answer's body, in a fixed order: a packet that comes again gets the same
  /// bytes.
  public var members: [JSONValue.Member] {
    let tables = ids.sorted { $0.key < $1.key }.map { table in
      JSONValue.Member(
        table.key.text,
        .object(table.value.sorted { $0.key < $1.key }.map { .init($0.key.text, .string($0.value.text)) }))
    }
    return [
      .init("ids", .object(tables)),
      .init("refused", .array(refused.map { ["op": .string($0.op), "message": .string($0.message)] })),
    ]
  }
}

/// The part of a receipt that tells which store took the packet (docs/packet.md, "The receipt").
public struct StoreReceipt: Hashable, Sendable {
  /// nil: the receiver tells no identity.
  public var store: StoreMark?
  /// The store does not have the packet before this one, although it was accepted: it knows less than it did.
  public var isChainBroken: Bool

  public init(store: StoreMark?, isChainBroken: Bool) { (self.store, self.isChainBroken) = (store, isChainBroken) }

  /// Reads the body of an answer.
  public init(_ body: JSONValue) {
    self.init(store: body["store"]?.string.flatMap { StoreMark($0) }, isChainBroken: body["broken"]?.bool == true)
  }

  /// The members of the answer's body.
  public var members: [JSONValue.Member] {
    (store.map { [.init("store", .string($0.description))] } ?? []) + (isChainBroken ? [.init("broken", true)] : [])
  }
}
