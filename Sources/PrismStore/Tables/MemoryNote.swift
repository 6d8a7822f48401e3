import PrismProtocol
import PrismSQLite

/// The ledgers of a namespace's ring in memory as the disk knows them, in a note. It is written with each packet, at the close,
/// and after `sequencesMax` reports at most. After a restart of the machine it says how many were lost.
struct MemoryNote: Equatable {
  static let key = "memory"
  /// After these many numbers of reports it is written again: so no number is given twice.
  private static let sequencesMax: Int64 = 65_536
  private static let accounts: [Ledger.Account] = [.kept, .overwritten, .removed, .corrupt, .lostWithPower]

  /// Of each kind of row.
  private(set) var ledgers: [Ledger]
  /// The last number of a report in the ring.
  private(set) var sequence: Int64

  init(_ ledgers: [Ledger], sequence: Int64) { (self.ledgers, self.sequence) = (ledgers, sequence) }

  init?(note: [UInt8]) {
    let numbers = (try? JSONValue(parsing: note))?.array?.compactMap(\.int) ?? []
    guard numbers.count == 1 + RowKind.reports.count * Self.accounts.count, numbers.allSatisfy({ $0 >= 0 }) else {
      return nil
    }
    (ledgers, sequence) = ([], Int64(numbers[0]))
    for kind in RowKind.reports.indices {
      var ledger = Ledger()
      for (place, account) in Self.accounts.enumerated() {
        ledger[account] = numbers[1 + kind * Self.accounts.count + place]
        ledger.stored += ledger[account]
      }
      ledgers.append(ledger)
    }
  }

  var note: [UInt8] {
    let counts = ledgers.flatMap { ledger in Self.accounts.map { JSONValue.int(ledger[$0]) } }
    return JSONValue.array([.int(Int(sequence))] + counts).bytes
  }

  func ledger(_ kind: RowKind) -> Ledger { ledgers[kind.number] }

  /// Above the number of every report that it knows, or does not know yet.
  var sequenceEnd: Int64 { sequence + Self.sequencesMax + 1 }

  /// The machine was restarted: nothing is kept any more.
  mutating func losePower() {
    sequence = sequenceEnd - 1
    for index in ledgers.indices { ledgers[index].move(ledgers[index][.kept], from: .kept, to: .lostWithPower) }
  }
}

extension Ledger.Account {
  /// In the ledger of a ring in memory: from such a ring nothing is evicted.
  static let lostWithPower = Self.evicted
}

extension SQLiteConnection {
  /// By namespace.
  func memoryNotes() throws(SQLiteError) -> [Int: MemoryNote] {
    try notes("key = '\(MemoryNote.key)'").reduce(into: [:]) { $0[$1.namespace] = MemoryNote(note: $1.value) }
  }
}
