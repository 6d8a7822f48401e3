import PrismConfig
import PrismProtocol
import PrismStore

extension Delivery {
  /// The one thing at a time that the store does for the delivery.
  enum StoreWork: Sendable, Equatable {
    case recovery, look
    case reading(PacketID)
    case commit(dispositions: Int, claims: Int)
  }

  struct Drain: Sendable {
    /// Rows wait, as the store said: the first claim of a device may be written down.
    var hasLooked = false
    /// The pause that a failure asks for. It begins when the drain's last commit is done; no other drain begins before.
    var failure: UploadState.Pause?
    /// The packets in flight must be read from the store again.
    var storeFailed = false
    /// The drain posted a packet: claims go on while the next one is built.
    var hasPosted = false
  }

  /// The next work of the store; nil: there is no such.
  func nextWork(_ types: Claim.TypeFilter, _ now: Conditions) -> StoreWork? {
    guard let drain, storeWork == nil else { return nil }
    let dispositions = queue.dispositions.count
    if !queue.isRecovered { return dispositions == 0 ? .recovery : .commit(dispositions: dispositions, claims: 0) }
    if queue.hasUncommittedSplit { return .commit(dispositions: dispositions, claims: 0) }
    if let next = queue.next, case .stored = next.content, hasRoom(for: next, now) { return .reading(next.id) }
    guard !queue.isExhausted, let deviceID = now.seal?.deviceID, queue.mayClaim(as: deviceID),
      queue.wantsMore(hasPosted: drain.hasPosted, flowRestBytes: now.flowRestBytes)
    else {
      return nil
    }
    // Before the first claim of a device, which is written down: a namespace in which nothing was ever stored would get
    // its tables for it.
    if queue.sender?.deviceID != deviceID, dispositions == 0, !now.hasNotes, !drain.hasLooked { return .look }
    let claims = ClaimPlan.count(lastPacketBytes: queue.lastPacketBytes, now)
    return .commit(dispositions: dispositions, claims: claims)
  }

  /// An event that the delivery answers with actions.
  enum Event: Sendable {
    /// A request, a trigger or a stop.
    case upload(UploadState.Event)
    /// Claims find the reports again that waited while others went on.
    case setBacksEnded
    /// The failures that an earlier run noted.
    case restored(RetryRecord)
    /// The configured one, which may be another than before.
    case collector(CollectorAddress)
    case recovered([PacketInFlight], lastAccepted: PacketID?, sender: StreamIdentity?)
    case looked(hasRows: Bool)
    /// The commit is done; these are the packets that its claims made.
    case committed([ClaimedPacket])
    /// nil: the store has no such packet, or no row of it is whole.
    case read(PacketID, ClaimedPacket?)
    case storeFailed
    case built([BuiltPacket])
    case notBuilt([PacketID], String)
    case answered(PacketID, DeliveryOutcome)
    case carry(CarryEvent)
  }

  /// Something to do. An action that has an answer is answered with one event; until then no other of its kind is asked for.
  enum Action: Sendable {
    /// Answered with `recovered` or `storeFailed`, as are the next three with theirs.
    case recover
    case look
    case read(PacketID)
    case commit(UploadCommit)
    /// Answered with `built` or `notBuilt`.
    case build([ClaimedPacket], PacketSeal, wifiOnly: TypeSet)
    /// Answered with `answered`.
    /// - Parameter pending: packets before it that have no receipt yet.
    case post(BuiltPacket, dependsOn: PacketID?, pending: Int, needsNewConnection: Bool)
    /// The note of its failures, to be written with the next commit; nil removes it.
    case rememberRetry([UInt8]?)
    case accepted(PacketID, DeliveryOutcome)
    case circuit(CircuitEvent)
    /// Large reports may pass now, which a proxy did not let through.
    case endSetBacks
    case log(Message)
    /// A drain ended. `isOver`: no other one follows at once.
    case ended(isOver: Bool)

    var isNote: Bool { if case .rememberRetry = self { true } else { false } }
  }

  enum CircuitEvent: Sendable { case succeeded, failed, forgotten }
  enum Message: Sendable, Equatable {
    case deadLetter(status: Int)
    case notDelivered(cause: String)
    case setBack(cause: String, bodyBytes: Int)
    case deliveredAgain
  }

  /// Everything that decisions depend on besides the value itself, as it is when the event comes.
  struct Conditions: Sendable {
    var instant: Instant
    var random: Randomness
    var verdict: Gates.Verdict
    var isMetered: Bool
    /// The rest of the budget on metered networks, without the packets on their way; nil if traffic costs nothing.
    var flowRestBytes: Int?
    /// The circuit is open: one packet goes at a time.
    var isProbe = false
    var shares = DeliveryShares()
    var isStopping: Bool
    /// Notes of the namespace wait for a commit.
    var hasNotes: Bool
    /// nil: the namespace is not configured any more.
    var configuration: NamespaceConfiguration?
    /// With the device of the configuration; nil: there is no key.
    var seal: PacketSeal?
    var wifiOnlyTypes: TypeSet

    func newID(since idTimeMin: Int64 = 0) -> PacketID {
      var random = random
      return PacketID(unixMilliseconds: max(instant.unixMilliseconds, idTimeMin), using: &random)
    }
  }
}

/// An event of carrying by file (docs/carrying.md).
enum CarryEvent: Sendable {
  /// Packets are handed to a carrier from here on, though a gate keeps them.
  case begins
  case ends
  /// The packets in flight must be known before an answer is `returned`.
  case recovery
  /// The answer to a packet came back in a file.
  case returned(PacketID, DeliveryOutcome)
}

/// The part that a namespace and kind may take of the transport and the store.
struct DeliveryShares: Sendable {
  /// Packets that it may have on their way, of all that the transport carries.
  var packetsMax = ReceiverFeatures.windowMax
  /// Several clients wait for the store: what it does at a time is short.
  var hasContention = false
}

extension Delivery.Conditions {
  /// Packets that may be on their way, if the receiver takes them.
  var windowMax: Int { min(configuration?.window ?? 1, shares.packetsMax) }

  /// The rest of the budget with which a packet may leave. One that can't be made smaller and costs more than half of the whole
  /// budget needs half of it: it might never find more.
  func neededBytes(_ next: InFlightQueue.Entry, cost: Int) -> Int {
    guard !next.canShrink, let configuration else { return cost }
    return min(cost, configuration.maxFlowBytes / 2)
  }
}
