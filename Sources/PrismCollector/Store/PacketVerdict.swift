import PrismProtocol

/// A stream as its store knows it when a packet comes, and the one verdict about that packet. Stores read and lock it, and
/// decide nothing.
struct KnownStream: Equatable {
  /// In the store; nil: it is new.
  var number: Int64?
  /// That were ever stored.
  var packets: Int64 = 0
  /// Of the ids that the packets of a group name, those that are stored.
  var ids: Set<PacketID> = []
  /// Of the newest id that is known, in milliseconds since 1970.
  var newestTime: Int64?
  /// Ids up to this time may be forgotten.
  var forgottenTime: Int64?
  /// The same of ids that were made by a clock that was not set.
  var forgottenUnsetTime: Int64?

  /// - Parameters:
  ///   - idsSince: ids that were made before may be forgotten, by the store's clock; milliseconds since 1970.
  ///   - store: the store's own identity.
  func verdict(on submission: PacketSubmission, idsSince: Int64, in store: StoreMark?) -> PacketOutcome {
    let delivery = submission.packet.delivery
    if ids.contains(delivery.context.packetID) { return .duplicate }
    guard let predecessor = delivery.dependsOn else {
      return mayHaveForgotten(delivery.context.packetID, idsSince) ? .tooOld : .stored(chainIsBroken: false)
    }
    if ids.contains(predecessor) { return .stored(chainIsBroken: false) }
    // The packets before it are in another store: it waits for no packet, and nothing is lost.
    let isElsewhere = store != nil && delivery.acceptingStore.map { $0.id != store?.id } ?? false
    // A recorded packet names a predecessor that is forgotten, too; a device with a wrong clock names its last one.
    if mayHaveForgotten(delivery.context.packetID, idsSince) { return .tooOld }
    let isAwaited = submission.needsPredecessor || packets > 0 && !submission.isLate && !isElsewhere
    return isAwaited ? .predecessorMissing : .stored(chainIsBroken: !isElsewhere)
  }

  /// Whether the id, which is not known, may be of a packet that was stored. No clock alone decides: not the collector's, which
  /// may be ahead, not that of a device, whose ids may be ahead of the clock.
  private func mayHaveForgotten(_ id: PacketID, _ idsSince: Int64) -> Bool {
    let time = id.unixMilliseconds
    guard id.isOfSetClock else { return time <= forgottenUnsetTime ?? -1 }
    if time <= forgottenTime ?? -1 { return true }
    let newest = newestTime ?? 0
    return time < idsSince && time < newest - PacketID.knownMilliseconds
  }

  /// The packet is the stream's last one from now on.
  mutating func add(_ id: PacketID) {
    packets += 1
    ids.insert(id)
    newestTime = max(newestTime ?? 0, id.unixMilliseconds)
  }
}

extension PacketID {
  /// 30 days.
  static let knownMilliseconds: Int64 = 30 * 86_400_000

  /// Begin of 2020, milliseconds since 1970: a time of before is of a clock that was not set, and says nothing.
  static let firstSetTime: Int64 = 1_577_836_800_000
  var isOfSetClock: Bool { unixMilliseconds >= Self.firstSetTime }
}

/// The packets of one transaction: each is held to what the store has, and to those before it.
struct PacketGroup {
  let submissions: [PacketSubmission]
  private(set) var streams: [StreamID: KnownStream]
  private(set) var outcomes: [PacketOutcome] = []
  private(set) var room: QuotaRoom

  /// - Parameters:
  ///   - streams: as the store locked them.
  ///   - room: of their namespaces and devices.
  ///   - idsSince, store: as of `KnownStream.verdict`.
  init(
    _ submissions: [PacketSubmission], _ streams: [StreamID: KnownStream], _ room: QuotaRoom, idsSince: Int64,
    in store: StoreMark?
  ) {
    (self.submissions, self.streams, self.room) = (submissions, streams, room)
    for submission in submissions {
      let context = submission.packet.delivery.context
      let known = self.streams[StreamID(context), default: KnownStream()]
      let overdraft = self.room.overdraft(of: submission.packet)
      var outcome = known.verdict(on: submission, idsSince: idsSince, in: store)
      // Behind one that finds no room a packet is not held: that one may take hours.
      if outcome.isStored || outcome == .predecessorMissing, let overdraft {
        outcome = .overQuota(overdraft)
      }
      if outcome.isStored {
        self.room.take(submission.packet)
        self.streams[StreamID(context), default: KnownStream()].add(context.packetID)
      }
      outcomes.append(outcome)
    }
  }

  /// The packets that are new, in their order, with their streams.
  var stored: [(packet: OpenedPacket, stream: StreamID, chainIsBroken: Bool)] {
    zip(submissions, outcomes).compactMap { submission, outcome in
      guard case .stored(let chainIsBroken) = outcome else { return nil }
      return (submission.packet, StreamID(submission.packet.delivery.context), chainIsBroken)
    }
  }

  /// Carries out the operations of new packets, and answers those that were stored before once more.
  /// - Parameters:
  ///   - numbers: of the streams in the store.
  ///   - now: milliseconds since 1970.
  mutating func carryOut(_ records: RecordTables, _ numbers: [StreamID: Int64], now: Int64) throws {
    for (index, submission) in submissions.enumerated() {
      guard let operations = submission.packet.records else { continue }
      let (id, stream) = (submission.packet.delivery.context.packetID, StreamID(submission.packet.delivery.context))
      guard let number = numbers[stream] else { continue }
      switch outcomes[index] {
      case .stored(let chainIsBroken):
        var applied = try records.apply(operations, id, from: stream, number: number, now: now)
        applied.isChainBroken = chainIsBroken
        outcomes[index] = .applied(applied)
      case .duplicate: outcomes[index] = .applied(try records.answer(to: id, operations, from: stream, number: number))
      case .applied, .predecessorMissing, .overQuota, .tooOld: break
      }
    }
  }
}

extension PacketOutcome {
  /// The packet is new, and is at rest with its group.
  var isStored: Bool { if case .stored = self { true } else { false } }
}
