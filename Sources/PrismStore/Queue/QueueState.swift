import PrismProtocol

/// A value for each lane.
struct LaneValues: Equatable, Sendable {
  private var crash: Int64
  private var realtime: Int64
  private var rest: Int64

  init(_ value: (Lane) -> Int64) { (crash, realtime, rest) = (value(.crash), value(.realtime), value(.rest)) }

  subscript(lane: Lane) -> Int64 {
    get {
      switch lane {
      case .crash: crash
      case .realtime: realtime
      case .rest: rest
      }
    }
    set {
      switch lane {
      case .crash: crash = newValue
      case .realtime: realtime = newValue
      case .rest: rest = newValue
      }
    }
  }

  /// The id just below a lane's first one.
  static let bases = LaneValues { RowID(lane: $0, sequence: 0).value }
}

extension Lane {
  /// Above every id of the lane.
  var idEnd: Int64 { Int64(rawValue + 1) << RowID.sequenceBits }
}

/// What is known in memory of one namespace's rows of one kind. It says what the database says after every commit: when
/// a transaction fails, all of it is read again.
struct QueueState: Sendable {
  var ledger = Ledger()
  /// Sum of `size` of waiting, claimed and dead rows.
  var bytes = 0
  var lastSequence: Int64 = 0
  /// The newest `created_time` of each lane.
  var newestCreated = LaneValues { _ in .min }
  var lastAccepted: PacketID?
  /// In order of sending.
  var packets: [PacketState] = []
  private var cursors: [ClaimCursor] = []

  /// How far claims with these types have come.
  mutating func cursor(for types: Claim.TypeFilter) -> LaneValues {
    if let cursor = cursors.first(where: { $0.types == types }) { return cursor.after }
    if cursors.count == 4 { cursors.removeFirst() }
    cursors.append(ClaimCursor(types: types, after: .bases))
    return .bases
  }

  mutating func setCursor(_ after: LaneValues, for types: Claim.TypeFilter) {
    guard let index = cursors.firstIndex(where: { $0.types == types }) else { return }
    cursors[index].after = after
  }

  /// These rows wait again: claims look at them again.
  mutating func release(_ members: IDRuns) {
    for index in cursors.indices {
      for run in members.runs {
        guard let lane = RowID(value: run.first).lane else { continue }
        cursors[index].after[lane] = min(cursors[index].after[lane], run.first - 1)
      }
    }
  }

  /// The run of a packet in flight that holds this row; nil: it waits.
  func claimedRun(of id: Int64) -> IDRuns.Run? {
    for packet in packets {
      if let run = packet.members.run(of: id) { return run }
    }
    return nil
  }

  /// What so many rows' metas come to, a little more; payloads, whose share of the bytes nobody knows, are not in it.
  func metaBytesExpected(of rows: Int, kind: ReportKind) -> Int {
    let held = ledger[.waiting] + ledger[.claimed] + ledger[.dead]
    let each = kind == .payload || held == 0 ? 768 : bytes / held + bytes / held / 16
    return min(rows * each + 4096, 16 << 20)
  }

  /// `count` rows of `bytes` in all leave the store.
  mutating func remove(_ count: Int, bytes: Int, from source: Ledger.Account, to target: Ledger.Account) {
    ledger.move(count, from: source, to: target)
    self.bytes = max(0, self.bytes - bytes)
    if ledger[.waiting] + ledger[.claimed] + ledger[.dead] == 0 { self.bytes = 0 }
  }
}

/// For claims with one choice of types: every row of a lane up to `after` is claimed, or of a type that is not chosen.
/// So rows that may not leave are looked at once, not once a claim.
private struct ClaimCursor: Sendable {
  let types: Claim.TypeFilter
  var after: LaneValues
}

/// A packet in flight.
struct PacketState: Sendable {
  var id: PacketID
  /// Its place in the order of sending.
  var position: Int
  var createdTime: Int64
  /// Sum of `size`.
  var bytes: Int
  var hasClientIDs: Bool
  var header: String
  var members: IDRuns

  func sum(in queue: QueueID) -> Int64 {
    RowSum.ofPacket(
      id.bytes, queue, createdTime: createdTime, hasClientIDs: hasClientIDs, header: header, members: members.text)
  }
}
