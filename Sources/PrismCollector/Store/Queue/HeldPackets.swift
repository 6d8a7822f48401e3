import PrismProtocol

/// Packets that came before their predecessor, found by what they wait for.
struct HeldPackets {
  static let countMax = 512
  /// Of one device, so that others find room.
  static let countOfDeviceMax = 64

  /// The most that they may take of the memory of all packets: the others must find room.
  let bytesMax: Int
  private var packets: [Int: (packet: QueuedPacket, timer: Task<Void, Never>)] = [:]
  /// The numbers of those behind a packet, in the order in which they came.
  private var followers: [PacketKey: [Int]] = [:]

  init(bytesMax: Int) { self.bytesMax = bytesMax }

  var count: Int { packets.count }

  func hasRoom(for packet: QueuedPacket) -> Bool {
    guard packets.count < Self.countMax else { return false }
    let ofDevice = packets.values.count { $0.packet.context.deviceID == packet.context.deviceID }
    let bytes = packets.values.reduce(packet.leasedBytes) { $0 + $1.packet.leasedBytes }
    return ofDevice < Self.countOfDeviceMax && bytes <= bytesMax
  }

  /// - Parameter timer: cancelled when it is held no longer.
  mutating func insert(_ packet: QueuedPacket, behind predecessor: PacketKey, timer: Task<Void, Never>) {
    packets[packet.number] = (packet, timer)
    followers[predecessor, default: []].append(packet.number)
  }

  /// nil: it is not held any more.
  mutating func remove(_ number: Int) -> QueuedPacket? {
    guard let (packet, timer) = packets.removeValue(forKey: number) else { return nil }
    timer.cancel()
    guard let predecessor = packet.predecessor else { return packet }
    followers[predecessor]?.removeAll { $0 == number }
    if followers[predecessor]?.isEmpty == true { followers[predecessor] = nil }
    return packet
  }

  /// Those that name `packet` as their predecessor.
  mutating func removeFollowers(of packet: PacketKey) -> [QueuedPacket] {
    (followers[packet] ?? []).compactMap { remove($0) }
  }

  /// Those behind `packet`, those behind them, and so on: one transaction may take them all.
  mutating func removeChain(behind packet: PacketKey) -> [QueuedPacket] {
    var chain = removeFollowers(of: packet)
    var next = 0
    while next < chain.count {
      chain += removeFollowers(of: chain[next].key)
      next += 1
    }
    return chain
  }

  mutating func removeAll() -> [QueuedPacket] { packets.keys.sorted().compactMap { remove($0) } }
}
