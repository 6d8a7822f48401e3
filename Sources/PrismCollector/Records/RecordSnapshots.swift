import PrismBase
import PrismPacket
import PrismProtocol
import Synchronization

/// Answers with all records of a table. Those of the fleet are packed once for all devices that ask; a device's own are read
/// for each answer, since the device changes them, too.
actor RecordSnapshots {
  /// Of one snapshot, and of all that are kept.
  private static let bytesMax = 512 * 1_048_576
  /// That are kept: each is an open file.
  private static let keptMax = 64
  private static let ofDevicesMax = 10_000

  private struct Key: Hashable {
    let place: RecordPlace
    let sequence: Int64
    let mark: StoreMark?
    let encoding: PacketEncoding
  }

  private let folder: String
  /// In the order of their last use.
  private var kept: [(key: Key, snapshot: RecordSnapshot)] = []
  private var builds: [Key: Task<RecordSnapshot, any Error>] = [:]
  /// Those that are made at a time; further ones wait.
  private let gate = ReadGate(
    countMax: 2, waitingMax: 256, "too many devices ask for all records; try again", retryAfterSeconds: 30)
  /// Answers for one device that are made or not read yet.
  private var ofDevices: [RecordPlace: ReadGate] = [:]
  /// Since the start.
  private(set) var built = 0

  init(folder: String) { self.folder = folder }

  /// - Parameter sequence: the table's newest number.
  /// - Throws: `CollectorRefusal`, `RecordSnapshotFault`, `StoreFailure`, `PacketError`.
  func snapshot(
    of place: RecordPlace, sequence: Int64, in mark: StoreMark?, _ encoding: PacketEncoding, from store: any RecordStore
  ) async throws -> RecordSnapshot {
    guard place.device == nil else {
      if ofDevices.count >= Self.ofDevicesMax { ofDevices = ofDevices.filter { $0.value.isUsed } }
      let gate =
        ofDevices[place]
        ?? ReadGate(
          countMax: 2, "this device asks for all of its records already; try again", retryAfterSeconds: 5)
      ofDevices[place] = gate
      let turn = try gate.take()
      var snapshot = try await build(place, encoding, store)
      snapshot.turn = turn
      return snapshot
    }
    let key = Key(place: place, sequence: sequence, mark: mark, encoding: encoding)
    if let index = kept.firstIndex(where: { $0.key == key }) {
      let found = kept.remove(at: index)
      kept.append(found)
      return found.snapshot
    }
    if let build = builds[key] { return try await build.value }
    let build = Task { try await self.build(place, encoding, store) }
    builds[key] = build
    defer { builds[key] = nil }
    let snapshot = try await build.value
    // It may be newer than it was asked for.
    keep(
      snapshot, as: Key(place: place, sequence: snapshot.sequence, mark: snapshot.mark, encoding: encoding))
    return snapshot
  }

  private func build(
    _ place: RecordPlace, _ encoding: PacketEncoding, _ store: any RecordStore
  ) async throws -> RecordSnapshot {
    let turn = try await gate.wait()
    defer { withExtendedLifetime(turn) {} }
    built += 1
    let writer = Mutex(try RecordSnapshotWriter(folder: folder, encoding: encoding, bytesMax: Self.bytesMax))
    try await store.readAll(of: place) { line in try writer.withLock { try $0.add(line) } }
    return try writer.withLock { try $0.finish() }
  }

  private func keep(_ snapshot: RecordSnapshot, as key: Key) {
    // An older one of the table is asked for no more.
    kept.removeAll { $0.key.place == key.place && $0.key.encoding == key.encoding }
    kept.append((key, snapshot))
    while kept.count > Self.keptMax || kept.reduce(0, { $0 + $1.snapshot.file.byteCount }) > Self.bytesMax {
      kept.removeFirst()
    }
  }
}
