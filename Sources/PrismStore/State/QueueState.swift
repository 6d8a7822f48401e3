import PrismProtocol

/// The known state of one queue, in memory. It equals the database after every commit. After a failed transaction all
/// of it is read again.
struct QueueState: Sendable {
  var ledger = Ledger()
  /// Sum of `size` of waiting, claimed and dead rows.
  var bytes = 0
  var lastSequence: Int64 = 0
  var lastAccepted: PacketID?
  var segments = RowSegments()
  /// In order of sending.
  var packets: [PacketRecord] = []
  /// Rows of the ring that wait for a packet, in the order of sending.
  var releases: [ReleaseRecord] = []
  /// For claims with one choice of types: every row of a priority up to `after` is claimed, or of a type that is not chosen.
  /// So rows that may not leave are read once, not once a claim.
  private var cursors: [(types: Claim.TypeFilter, after: PriorityValues)] = []
  /// Rows that wait while others go on.
  private(set) var setBack = IDRuns()

  init() {}

  init(_ record: LedgerRecord) {
    (ledger, bytes, lastSequence) = (record.ledger, record.bytes, record.lastSequence)
    (lastAccepted, segments) = (record.lastAccepted, record.segments)
  }

  func record(_ queue: QueueID) -> LedgerRecord {
    var record = LedgerRecord(queue: queue)
    (record.ledger, record.bytes, record.lastSequence) = (ledger, bytes, lastSequence)
    (record.lastAccepted, record.segments) = (lastAccepted, segments)
    return record
  }

  /// How far claims with these types have come.
  mutating func cursor(for types: Claim.TypeFilter) -> PriorityValues {
    if let cursor = cursors.first(where: { $0.types == types }) { return cursor.after }
    if cursors.count == 4 { cursors.removeFirst() }
    cursors.append((types, .bases))
    return .bases
  }

  mutating func setCursor(_ after: PriorityValues, for types: Claim.TypeFilter) {
    guard let index = cursors.firstIndex(where: { $0.types == types }) else { return }
    cursors[index].after = after
  }

  /// These rows wait again: claims look at them again.
  mutating func release(_ members: IDRuns) {
    for index in cursors.indices {
      for run in members.runs {
        guard let priority = RowID(value: run.first).priority else { continue }
        cursors[index].after[priority] = min(cursors[index].after[priority], run.first - 1)
      }
    }
  }

  mutating func setBack(_ members: IDRuns) { setBack = IDRuns(union: [setBack, members]) }

  /// Claims find the rows again.
  mutating func endSetBacks() {
    release(setBack)
    setBack = IDRuns()
  }

  /// Rows of a segment of the ring that may leave, or are on their way.
  func leaving(at place: Int) -> IDRuns {
    let members = IDRuns(union: packets.map(\.members).filter(\.isOfRing) + releases.map(\.members))
    var result = IDRuns()
    for piece in segments.pieces(of: members) where piece.place == place { result.append(piece.run) }
    return result
  }

  /// Whether a row of the ring is not kept any more.
  func isLeaving(_ id: Int64) -> Bool { isReleased(id) || leftRun(of: id) != nil }
  /// Whether the collector is asked before a row of the ring leaves.
  func isAsked(_ id: Int64) -> Bool { releases.contains { $0.devices > 0 && $0.members.run(of: id) != nil } }
  /// Whether a row of the ring waits for a packet.
  func isReleased(_ id: Int64) -> Bool { releases.contains { $0.members.run(of: id) != nil } }

  /// Rows that a claim may find: all that wait, but for those of which the collector is asked first.
  var claimable: Int {
    ledger[.waiting] - releases.reduce(0) { $0 + ($1.devices > 0 ? $1.members.count : 0) }
  }

  /// The run that holds this row, of a packet in flight or of delivered rows; nil: it waits.
  func leftRun(of id: Int64) -> IDRuns.Run? { segments.spentRun(of: id) ?? claimedRun(of: id) }

  /// The run of a packet in flight that holds this row.
  func claimedRun(of id: Int64) -> IDRuns.Run? {
    for packet in packets {
      if let run = packet.members.run(of: id) { return run }
    }
    return nil
  }

  /// The expected bytes of the metas of `rows` rows, and some more. Of payload rows the metas' share is a guess.
  func metaBytesExpected(of rows: Int, kind: RowKind) -> Int {
    let held = ledger[.waiting] + ledger[.claimed] + ledger[.dead]
    let each = kind.hasPayload || held == 0 ? 768 : bytes / held + bytes / held / 16
    return min(rows * each + 4096, 16 << 20)
  }

  /// `count` rows of `bytes` in all leave the store.
  mutating func remove(_ count: Int, bytes: Int, from source: Ledger.Account, to target: Ledger.Account) {
    ledger.move(count, from: source, to: target)
    self.bytes = max(0, self.bytes - bytes)
    if ledger[.waiting] + ledger[.claimed] + ledger[.dead] == 0 { self.bytes = 0 }
  }
}

struct PriorityValues: Sendable {
  private var values: [4 of Int64]

  init(_ value: (Priority) -> Int64) { values = .init { value(Priority.allCases[$0]) } }

  subscript(priority: Priority) -> Int64 {
    get { values[priority.rawValue] }
    set { values[priority.rawValue] = newValue }
  }

  /// The id just below a priority's first one.
  static let bases = PriorityValues { RowID(priority: $0, sequence: 0).value }
}

extension Priority {
  /// Above every id of the priority.
  var idEnd: Int64 { Int64(rawValue + 1) << RowID.sequenceBits }
}

/// A place in the rows of a namespace, behind the last one that was looked at.
struct RowPlace {
  let queue: QueueID
  let priority: Priority
  var after: Int64

  /// Before the first row of each kind and priority.
  static func begins(of queues: [QueueID]) -> [RowPlace] {
    queues.flatMap { queue in
      Priority.allCases.map { RowPlace(queue: queue, priority: $0, after: PriorityValues.bases[$0]) }
    }
  }
}
