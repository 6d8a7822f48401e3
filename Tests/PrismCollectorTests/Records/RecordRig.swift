import PrismBase
import PrismPacket
import PrismProtocol
import PrismTestSupport
import Synchronization
import Testing

@testable import PrismCollector

/// A store of records with the fleet's and a device's table, as its writers, its devices and their questions see it.
struct RecordRig {
  static let kinds: [StoreRig.Kind] = [.sqlite, .postgresql]
  static let shop = NamespaceName("shop")!
  static let part = RecordTableName("part")!

  let folder: StoreRig
  let store: any PacketStore
  let records: any RecordStore
  /// The table of a device.
  let ofDevice = RecordPlace(namespace: shop, table: part, device: "d")
  let ofFleet = RecordPlace(namespace: shop, table: part, device: nil)

  init(_ kind: StoreRig.Kind) async throws {
    let folder = StoreRig()
    try self.init(try await folder.store(kind), folder)
  }

  init(_ store: any PacketStore, _ folder: StoreRig = StoreRig()) throws {
    (self.store, self.folder) = (store, folder)
    records = store
  }

  // MARK: The server's writers

  static func put(_ id: String, _ n: Int) -> RecordChange {
    RecordChange(id: RecordID(id)!, action: .put(["n": .int(n)]))
  }
  static func delete(_ id: String) -> RecordChange { RecordChange(id: RecordID(id)!, action: .delete) }

  @discardableResult
  func change(
    _ changes: RecordChange..., fleet: Bool = false, if condition: ChangeCondition = .always
  ) async throws -> [RecordChanged] {
    try await records.change(changes, of: fleet ? ofFleet : ofDevice, if: condition)
  }

  /// The records of a place, by their ids.
  func list(_ place: RecordPlace? = nil) async throws -> [String] {
    var filter = RecordFilter(scope: .everything, namespace: Self.shop, table: Self.part)
    (filter.device, filter.limit) = ((place ?? ofDevice).owner, 1000)
    return try await store.records(filter).map { "\($0.id)=\($0.serverID) \($0.n)" }.sorted()
  }

  // MARK: Devices

  static func operation(
    _ kind: RecordOperation.Kind, _ id: String, _ n: Int = 0, serverID: String? = nil, time: Int64 = 1
  ) -> RecordOperation {
    RecordOperation(
      op: "\(kind.name).\(id).\(n)", table: part, id: RecordID(id)!, serverID: serverID.flatMap { RecordID($0) },
      kind: kind, fields: kind == .delete ? nil : ["n": .int(n)], version: 1, changedTime: time)
  }

  static func packet(
    _ operations: [RecordOperation], device: String = "d", after predecessor: PacketID? = nil, clockAhead: Int64 = 0
  ) throws -> OpenedPacket {
    var random = SystemRandomNumberGenerator()
    let context = PacketContext(
      deviceID: device, namespace: shop, packetID: PacketID(unixMilliseconds: 1_700_000_000_000, using: &random),
      kind: .records)
    let lines = operations.map { String(decoding: $0.line, as: UTF8.self) }
    let delivery = try Delivery(
      try CollectorTests.request(context, metas: lines, payloads: [], dependsOn: predecessor), kind: .records,
      now: 1_700_000_000_000 - clockAhead)
    var packet = try OpenedPacket(
      delivery,
      ReadPacket(
        metas: MetaBlock(parsing: Array(lines.joined(separator: "\n").utf8), rowsMax: lines.count), payloads: []))
    packet.records = try RecordPacket(packet)
    return packet
  }

  /// A packet without a predecessor.
  func upload(_ operations: RecordOperation..., device: String = "d") async throws -> RecordApplied {
    guard case .applied(let applied)? = try await store.take(try Self.packet(operations, device: device), isLate: true)
    else { throw RecordRigFault() }
    return applied
  }

  static func question(
    of table: RecordTableName = part, in namespace: NamespaceName = shop, for device: String = "d", after: Int64?,
    lastPacket: PacketID? = nil
  ) -> DownQuestion {
    var random = SystemRandomNumberGenerator()
    return DownQuestion(
      deviceID: device, namespace: namespace, table: table, after: after, lastPacket: lastPacket,
      packetID: PacketID(unixMilliseconds: 1_700_000_000_000, using: &random), cipher: .aes128GCM, keyID: "main")
  }

  /// The members by which the API says what the device has.
  func fetch(_ id: String, fleet: Bool = false) async throws -> String {
    let found = try await records.record(RecordID(id)!, of: fleet ? ofFleet : ofDevice)
    let listed = try await list { $0.id == id }
    guard let found, listed == [String(decoding: found.fetchedText, as: UTF8.self)] else { return "\(listed)" }
    let json = try JSONValue(parsing: found.fetchedText)
    return ["pending", "reported", "fetchedTime"].compactMap { name in json[name].map { "\(name)=\($0.text)" } }.joined(
      separator: " ")
  }

  private func list(_ isWanted: (CollectedRecord) -> Bool) async throws -> [String] {
    var filter = RecordFilter(scope: .everything, namespace: Self.shop, table: Self.part)
    filter.limit = 1000
    return try await store.records(filter).filter(isWanted).map { String(decoding: $0.fetchedText, as: UTF8.self) }
  }

  func news(after: Int64?, device: String = "d") async throws -> RecordNews {
    try await records.news(of: Self.part, in: Self.shop, for: device, after: after)
  }

  /// The operations of an answer; nil: all records are to be read.
  func operations(after: Int64, device: String = "d") async throws -> [String]? {
    guard case .operations(let operations, _) = try await news(after: after, device: device) else { return nil }
    return operations.map { "\($0.sequence) \($0.kind.name) \($0.id) \($0.localID?.text ?? "-") \($0.n)" }
  }

  func all(_ place: RecordPlace? = nil) async throws -> [DownLine] {
    let lines = LinesRead()
    try await records.readAll(of: place ?? ofDevice) { lines.add($0) }
    return lines.all
  }
}

struct RecordRigFault: Error {}

/// Lines in their order.
final class LinesRead: Sendable {
  private let lines = Mutex<[DownLine]>([])
  var all: [DownLine] { lines.withLock { $0 } }
  func add(_ line: DownLine) { lines.withLock { $0.append(line) } }
}

extension CollectedRecord {
  var n: Int { (try? JSONValue(parsing: fields))?["n"]?.int ?? -1 }
}

extension DownOperation {
  var n: Int { (try? JSONValue(parsing: fields))?["n"]?.int ?? -1 }
}

extension RecordStore {
  /// The answer to a device, without its store.
  func news(
    of table: RecordTableName, in namespace: NamespaceName, for device: String, after: Int64?
  ) async throws(StoreFailure) -> RecordNews {
    try await reply(to: RecordRig.question(of: table, in: namespace, for: device, after: after)).news
  }
}
