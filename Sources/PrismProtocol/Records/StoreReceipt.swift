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
