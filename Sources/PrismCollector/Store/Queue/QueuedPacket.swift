import PrismProtocol

/// A packet on its way to the store, and who waits for its answer.
struct QueuedPacket {
  let number: Int
  var submission: PacketSubmission
  let answer: CheckedContinuation<PacketQueue.Answer, Never>
  /// When it is held no longer; nil: it never was.
  var heldUntil: Duration?
  /// The store's word, which only its predecessor can change.
  var isTooOld = false

  var context: PacketContext { submission.packet.delivery.context }
  var dependsOn: PacketID? { submission.packet.delivery.dependsOn }
  var isPending: Bool { submission.packet.delivery.hasPendingPredecessor }
  var key: PacketKey { PacketKey(context) }
  var predecessor: PacketKey? { dependsOn.map { PacketKey(stream: StreamID(context), packet: $0) } }
  /// Its part of the memory of all packets.
  var leasedBytes: Int { submission.packet.lease?.bytesTaken ?? bytes }
  var bytes: Int { submission.packet.unpackedBytes }
}

/// A packet of any stream.
struct PacketKey: Hashable {
  var stream: StreamID
  var packet: PacketID

  init(stream: StreamID, packet: PacketID) { (self.stream, self.packet) = (stream, packet) }
  init(_ context: PacketContext) { self.init(stream: StreamID(context), packet: context.packetID) }
}
