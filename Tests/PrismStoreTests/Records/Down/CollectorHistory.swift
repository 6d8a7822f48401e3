import Foundation
import PrismBase
import PrismHTTP
import PrismPacket
import PrismProtocol
import PrismSQLite
import PrismStore
import PrismTestSupport

@testable import PrismCollector

/// The collector's own store as the server of a history: uploads, writers' changes and answers go through its code.
struct CollectorHistory: HistoryServer {
  private static let device = "d"

  /// Some are ids that programs of the device choose, too.
  let names = ["w0", "w1", "w2", "w3", "a", "b"].map { RecordID($0)! }
  private let tables: [RecordTable]
  private let folder = TemporaryFolder.make()
  private let time = ManualTime()
  private var store: SQLitePacketStore

  init(_ tables: [RecordTable]) throws {
    self.tables = tables
    store = try Self.open(folder, time)
  }

  private static func open(_ folder: String, _ time: ManualTime) throws -> SQLitePacketStore {
    var options = SQLitePacketStore.Options(folder: folder, log: Logger(write: { _ in }))
    options.time = time
    return try SQLitePacketStore(options)
  }

  func close() async {
    await store.close()
    try? FileManager.default.removeItem(atPath: folder)  // a left folder harms no test
  }

  mutating func restart() async throws {
    await store.close()
    store = try Self.open(folder, time)
  }

  var now: Int64 { time.unixMilliseconds }
  mutating func advance() { time.advance(by: .seconds(1)) }

  // MARK: Writers

  private func place(_ table: RecordTableName) -> RecordPlace {
    let isOfFleet = tables.first { $0.name == table }!.scope == .fleet
    return RecordPlace(namespace: Rig.shop, table: table, device: isOfFleet ? nil : Self.device)
  }

  private func change(_ table: RecordTableName, _ id: RecordID, _ action: RecordChange.Action) async throws {
    _ = try await store.change([RecordChange(id: id, action: action)], of: place(table), if: .always)
  }

  func put(_ table: RecordTableName, _ id: RecordID, _ fields: JSONValue) async throws {
    try await change(table, id, .put(fields))
  }

  func delete(_ table: RecordTableName, _ id: RecordID) async throws {
    guard let known = try await store.record(id, of: place(table))?.serverID else { return }
    try await change(table, id, .delete)
    for holder in tables where holder.direction.isPulled {
      for field in holder.references.filter({ $0.value == table }).keys {
        for (other, fields) in try await rows(of: holder.name) where fields[field]?.string == known {
          try await delete(holder.name, other)
        }
      }
    }
  }

  // MARK: The table and its log

  func rows(of table: RecordTableName) async throws -> [RecordID: JSONValue] {
    var rows: [RecordID: JSONValue] = [:]
    for case .record(let record) in try await all(place(table)) {
      rows[record.id] = try JSONValue(parsing: record.fields)
    }
    return rows
  }

  private func all(_ place: RecordPlace) async throws -> [DownLine] {
    let (lines, continuation) = AsyncStream.makeStream(of: DownLine.self)
    try await store.readAll(of: place) { continuation.yield($0) }
    continuation.finish()
    return await lines.reduce(into: []) { $0.append($1) }
  }

  var sequence: Int64 {
    get throws {
      let connection = try SQLiteConnection(.init(path: folder + "/collector.db", isReadOnly: true))
      return try connection.firstInt("SELECT max(seq) FROM record_sequences") ?? 0
    }
  }

  /// As if there were a thousand newer deletions.
  func forget(allBut newest: Int64) throws {
    let floor = try sequence - newest
    let connection = try SQLiteConnection(.init(path: folder + "/collector.db"))
    try connection.execute(
      """
      DELETE FROM deleted_records WHERE seq <= \(floor);
      UPDATE record_tables SET floor = max(floor, min(seq, \(floor)));
      """)
  }

  // MARK: The device

  func answer(_ table: RecordTableName, after: Int64?, isWhole: Bool) async throws -> [DownLine] {
    let question = DownQuestion(
      deviceID: Self.device, namespace: Rig.shop, table: table, after: isWhole ? nil : after,
      packetID: PacketID("01900000-0000-7000-8000-000000000001")!, cipher: .aes128GCM, keyID: "main")
    let reply = try await store.reply(to: question)
    switch reply.news {
    case .operations(let operations, let sequence):
      return [.head(DownHead(isFull: false, sequence: sequence, count: operations.count))]
        + operations.map { .operation($0) }
    case .all(let place, _): return try await all(place)
    }
  }

  func take(_ packet: ClaimedPacket, sentTime: Int64) async throws -> RecordReceipt {
    let headers = PacketHeaders(
      deviceID: Self.device, namespace: Rig.shop, packetID: packet.id, kind: .records, itemCount: packet.itemCount,
      sentTime: sentTime, format: BlockFormat(cipher: .aes128GCM, keyID: "main", encoding: .gzip))
    let request = HTTPRequest(
      method: .post, path: "/prism/records", query: [],
      headers: headers.fields.map { ($0.name.lowercased(), $0.value) },
      body: [], peer: HTTPPeer(address: "", isLocal: true))
    var opened = try OpenedPacket(
      Delivery(request, kind: .records, now: now),
      ReadPacket(metas: MetaBlock(parsing: packet.metas, rowsMax: .max), payloads: []))
    opened.records = try RecordPacket(opened)
    guard case .applied(let applied)? = try await store.take([PacketSubmission(packet: opened, isLate: true)]).first
    else { throw CollectorHistoryFault() }
    return applied.receipt
  }
}

struct CollectorHistoryFault: Error {}
