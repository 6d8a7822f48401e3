import PrismBase
import PrismPacket
import PrismProtocol
import PrismTestSupport
import Testing

@testable import PrismCollector

/// A device, the server's writers and the network between them, drawn from a seed.
@Suite("Both sides of records") struct RecordModelTests {
  @Test("once both sides are quiet they hold the same records", arguments: RecordRig.kinds)
  func converges(kind: StoreRig.Kind) async throws {
    let seed = SeededRandom.announcedSeed("both sides of records")
    for history in 0..<4 {
      var random = SeededRandom(seed: seed &+ UInt64(history))
      let rig = try await RecordRig(kind)
      var device = DeviceModel(rig)
      for _ in 0..<150 { try await step(&device, rig, kind, &random) }
      // Each side learns what the other still says.
      for _ in 0..<3 {
        try await device.push()
        try await device.pull()
      }
      #expect(device.isQuiet)
      #expect(
        try await rig.list().map { $0.drop { $0 != "=" } } == device.list.map { $0.drop { $0 != "=" } },
        "history \(history)")
      await rig.store.close()
    }
  }

  private func step(
    _ device: inout DeviceModel, _ rig: RecordRig, _ kind: StoreRig.Kind, _ random: inout SeededRandom
  ) async throws {
    let id = "r\(Int.random(in: 0..<6, using: &random))"
    let n = Int.random(in: 0..<1000, using: &random)
    if kind == .sqlite { rig.folder.time.advance(by: .milliseconds(Int.random(in: 0...3, using: &random))) }
    let clock = kind == .sqlite ? rig.folder.time.unixMilliseconds : SystemTime().unixMilliseconds
    let time = clock + Int64.random(in: -5...5, using: &random)
    switch Int.random(in: 0..<9, using: &random) {
    case 0, 1: device.put(id, n, time)
    case 2: device.delete(id, time)
    case 3, 4: try await rig.change(RecordRig.put(id, n))
    case 5: try await rig.change(RecordRig.delete(id))
    case 6: try await device.push(losesAnswer: random.oneIn(3))
    case 7: if random.oneIn(20) { device.cursor = nil }
    default: try await device.pull()
    }
  }
}

/// A device's table `both` with the rule `newest` (docs/records.md), as simple as it can be.
private struct DeviceModel {
  private struct Record {
    var n: Int
    var time: Int64
    var serverID: String?
    var isDeleted = false
    /// It waits to be sent.
    var isDirty = true
    /// It was changed since its operation was sent.
    var isChangedSince = false
  }

  private let rig: RecordRig
  /// By the local id.
  private var records: [String: Record] = [:]
  var cursor: Int64?
  /// A packet that may have arrived, and the ids in it.
  private var sent: (packet: OpenedPacket, ids: [String])?

  init(_ rig: RecordRig) { self.rig = rig }

  var isQuiet: Bool { sent == nil && !records.values.contains { $0.isDirty } }
  var list: [String] {
    records.filter { !$0.value.isDeleted }.map { "\($0.key)=\($0.value.serverID ?? "") \($0.value.n)" }.sorted()
  }

  // MARK: Its programs

  mutating func put(_ id: String, _ n: Int, _ time: Int64) {
    change(id) { record in (record.n, record.isDeleted, record.time) = (n, false, max(time, record.time + 1)) }
  }

  mutating func delete(_ id: String, _ time: Int64) {
    guard records[id]?.isDeleted == false else { return }
    change(id) { record in (record.isDeleted, record.time) = (true, max(time, record.time + 1)) }
  }

  private mutating func change(_ id: String, _ body: (inout Record) -> Void) {
    var record = records[id] ?? Record(n: 0, time: 0)
    body(&record)
    (record.isDirty, record.isChangedSince) = (true, sent?.ids.contains(id) == true)
    records[id] = record
    if record.isDeleted, record.serverID == nil, !record.isChangedSince { records[id] = nil }
  }

  // MARK: Up

  mutating func push(losesAnswer: Bool = false) async throws {
    if sent == nil { try pack() }
    guard let (packet, ids) = sent else { return }
    guard case .applied(let applied)? = try await rig.store.take(packet, isLate: true) else { throw RecordRigFault() }
    if losesAnswer { return }
    sent = nil
    for id in ids {
      guard var record = records[id] else { continue }
      if let given = applied.receipt.ids[RecordRig.part]?[RecordID(id)!] { record.serverID = given.text }
      record.isDirty = record.isChangedSince
      record.isChangedSince = false
      records[id] = record.isDeleted && !record.isDirty ? nil : record
    }
  }

  private mutating func pack() throws {
    let dirty = records.filter { $0.value.isDirty }.sorted { $0.key < $1.key }
    guard !dirty.isEmpty else { return }
    let operations = dirty.map { id, record in
      let kind: RecordOperation.Kind = record.isDeleted ? .delete : record.serverID == nil ? .insert : .update
      return RecordRig.operation(kind, id, record.n, serverID: record.serverID, time: record.time)
    }
    sent = (try RecordRig.packet(operations), dirty.map(\.key))
  }

  // MARK: Down

  mutating func pull() async throws {
    guard sent == nil else { return }  // an operation in flight is answered before the server's changes
    switch try await rig.news(after: cursor) {
    case .operations(let operations, let sequence):
      for operation in operations {
        try #require(operation.sequence > cursor ?? 0)
        let n = operation.kind == .delete ? nil : operation.n
        learn(operation.id.text, operation.localID?.text, n: n, time: operation.time)
      }
      cursor = sequence
    case .all(let place, _):
      var held: Set<String> = []
      for line in try await rig.all(place) {
        switch line {
        case .head(let head): cursor = head.sequence
        case .operation: throw RecordRigFault()
        case .record(let record):
          let n = (try? JSONValue(parsing: record.fields))?["n"]?.int
          held.insert(learn(record.id.text, record.localID?.text, n: n, time: record.time))
        }
      }
      for (id, record) in records where !held.contains(id) && !record.isDirty { records[id] = nil }
    }
  }

  /// - Returns: the local id.
  @discardableResult
  private mutating func learn(_ serverID: String, _ localID: String?, n: Int?, time: Int64) -> String {
    let id = localID ?? records.first { $0.value.serverID == serverID }?.key ?? serverID
    if let record = records[id], record.isDirty, record.time > time {
      records[id]?.serverID = n == nil ? record.serverID : serverID
    } else if let n {
      records[id] = Record(n: n, time: time, serverID: serverID, isDirty: false)
    } else {
      records[id] = nil
    }
    return id
  }
}
