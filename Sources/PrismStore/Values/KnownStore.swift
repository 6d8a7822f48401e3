public import PrismProtocol

/// The server's stores that answered a namespace (docs/records.md, "Another store"). It is a note, so that it outlasts restarts.
public struct KnownStore: Sendable, Equatable {
  /// The relation of a store that answered to the one before it.
  public enum Change: Sendable, Equatable {
    /// It is the same, or the first one.
    case same
    /// It is another one: its deletions are not taken.
    case other
    /// The trusted one answers again after another one.
    case back
    /// It is the same, and does not have all that it had.
    case knowsLess
  }

  /// The result of the word that a store is the server's.
  public enum Acceptance: Sendable, Equatable {
    /// No store has answered yet.
    case nothingKnown
    /// Another one than the named one answered last; nothing changed.
    case isOther(StoreMark)
    /// Its deletions are taken. `isNews`: before, they were not.
    case accepted(StoreMark, isNews: Bool)
  }

  static let key = "records.store"

  /// The store whose deletions are taken: the first one, or the one that an operator accepted.
  public var trusted: StoreMark
  /// The one that answered last.
  public var latest: StoreMark
  /// Tables of which nothing is deleted because a whole answer lacks it, with the number of records that are kept so.
  public var kept: [RecordTableName: Int] = [:]
  /// The last packet of this device that the store lacked: it is news once.
  var missingPacket: PacketID?
  /// Records with a number above it, up to `marksThrough`, are to be marked as ones that the store does not have.
  var marksAfter: Int64 = 0
  var marksThrough: Int64 = 0

  init(_ store: StoreMark) { (trusted, latest) = (store, store) }

  /// The deletions of the one that answered last are taken.
  public var isTrusted: Bool { latest.id == trusted.id }
  /// Records are still to be marked.
  public var isMarking: Bool { marksAfter < marksThrough }

  /// nil if it is damaged: then the next store counts as the first one.
  init?(note: [UInt8]) {
    guard let value = try? JSONValue(parsing: note), let trusted = value["trusted"]?.string.flatMap({ StoreMark($0) }),
      let latest = value["met"]?.string.flatMap({ StoreMark($0) })
    else { return nil }
    (self.trusted, self.latest) = (trusted, latest)
    for member in value["kept"]?.object ?? [] {
      if let table = RecordTableName(member.key) { kept[table] = member.value.int ?? 0 }
    }
    missingPacket = value["missing"]?.string.flatMap { PacketID($0) }
    (marksAfter, marksThrough) = (Int64(value["after"]?.int ?? 0), Int64(value["through"]?.int ?? 0))
  }

  var note: [UInt8] {
    let kept = kept.sorted { $0.key < $1.key }.map { JSONValue.Member($0.key.text, .int($0.value)) }
    let value: JSONValue = [
      "trusted": .string(trusted.description), "met": .string(latest.description), "kept": .object(kept),
      "missing": .string(missingPacket?.description ?? ""), "after": .int(Int(marksAfter)),
      "through": .int(Int(marksThrough)),
    ]
    return value.bytes
  }
}
