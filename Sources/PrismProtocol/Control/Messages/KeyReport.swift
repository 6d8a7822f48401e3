/// The use of one of the packets' keys.
public struct KeyReport: ControlMessage {
  /// Blocks that it has encrypted on this device, and the most that one key may encrypt.
  public var blocks = 0, blocksMax = 0

  public init() {}

  public init(blocks: Int, blocksMax: Int) { (self.blocks, self.blocksMax) = (blocks, blocksMax) }

  public static let fields: [ControlField<KeyReport>] = [.init("blocks", \.blocks), .init("blocksMax", \.blocksMax)]

  /// Half of its blocks are used: plan a new key.
  public var isHalfUsed: Bool { blocksMax > 0 && blocks >= blocksMax / 2 }

  /// For people, of a key that is half used; nil of another one.
  public func note(id: String) -> String? {
    guard isHalfUsed else { return nil }
    return
      "the key \(id) has encrypted \(blocks) of the \(blocksMax) blocks that one key may encrypt: give its namespaces "
      + "a new key under a new id"
  }
}
