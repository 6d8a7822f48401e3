/// The packets that were refused for good lately: a packet that names one of them as its predecessor can't be held for it.
struct RefusedPackets {
  /// The oldest are forgotten. A packet after one that is forgotten is held in vain, and then sent again.
  static let countMax = 1024

  private var keys: Set<PacketKey> = []
  private var order: [PacketKey] = []

  func contains(_ key: PacketKey) -> Bool { keys.contains(key) }

  mutating func insert(_ key: PacketKey) {
    guard keys.insert(key).inserted else { return }
    order.append(key)
    if order.count > Self.countMax { keys.remove(order.removeFirst()) }
  }

  /// It was taken after all.
  mutating func remove(_ key: PacketKey) {
    guard keys.remove(key) != nil else { return }
    order.removeAll { $0 == key }
  }
}
