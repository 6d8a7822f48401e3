import Foundation
import Glibc
import PrismBase
import PrismProtocol
import PrismStore
import PrismTestSupport

/// A store in a folder of its own.
final class Rig: Sendable {
  static let shop = NamespaceName("shop")!
  static let order = ReportType("order")!
  static let click = ReportType("click")!

  let folder: String
  let time = ManualTime()

  init() {
    folder = TemporaryFolder.make()
  }

  deinit {
    for name in ["prism.db", "prism.db-wal", "prism.db-shm", "prism.lock", "ballast", "prism.run", "prism.db.toc"] {
      unlink(folder + "/" + name)
    }
    rmdir(folder)
  }

  /// Keeps the database and its log as a `kill -9` now would leave them; `restoreKilled` puts them back.
  func keepAsKilled() {
    for name in Self.killed {
      try? FileManager.default.copyItem(atPath: "\(folder)/\(name)", toPath: "\(folder)/kept-\(name)")
    }
  }

  func restoreKilled() {
    for name in Self.killed { rename("\(folder)/kept-\(name)", "\(folder)/\(name)") }
  }

  private static let killed = ["prism.db", "prism.db-wal", "prism.run"]

  var path: String { folder + "/prism.db" }

  func open(_ change: (inout StoreOptions) -> Void = { _ in }) async throws -> ReportStore {
    var options = StoreOptions(folder: folder)
    options.time = time
    options.log = Logger(write: { _ in })
    options.ballastBytes = 0
    change(&options)
    return try await ReportStore.openOnceFree(options)
  }

  /// One report a number; the body tells them apart.
  func batch(
    _ numbers: some Sequence<Int>, of type: ReportType = order, in namespace: NamespaceName = shop,
    priority: Priority = .rest,
    payload: [UInt8]? = nil, ids: [String]? = nil,
    quota: StoreQuota = StoreQuota(bytesMax: 1 << 30, evictsOldest: false),
    createdTime: Int64? = nil, context: CommonContext = CommonContext(members: Array(#""APP_NAME":"pos""#.utf8)),
    from userID: UInt32 = 1000, app: AppVersion? = nil
  ) -> ReportBatch {
    var batch = ReportBatch(namespace: namespace, userID: userID, context: context, quota: quota, app: app)
    batch.types = [.init(type: type, priority: priority, isRealtime: false)]
    for (index, number) in numbers.enumerated() {
      let body = append(Array(#""n":\#(number)"#.utf8), to: &batch.arena)
      var row = ReportBatch.Row(
        type: 0, createdTime: createdTime ?? time.unixMilliseconds, body: body, metaBytes: 200)
      row.payload = payload.map { append($0, to: &batch.arena) }
      row.clientReportID = ids.map { append(Array($0[index].utf8), to: &batch.arena) }
      batch.rows.append(row)
    }
    return batch
  }

  private func append(_ bytes: [UInt8], to arena: inout [UInt8]) -> Range<Int> {
    arena += bytes
    return (arena.count - bytes.count)..<arena.count
  }

  func packetID() -> PacketID {
    var random = SystemRandomNumberGenerator()
    return PacketID(unixMilliseconds: time.unixMilliseconds, using: &random)
  }

  func claim(
    _ namespace: NamespaceName = shop, _ kind: RowKind = .meta, types: Claim.TypeFilter = .all, items: Int = 1000,
    bytes: Int = 1 << 20, metaBytes: Int = 1 << 20
  ) -> Claim {
    Claim(
      namespace: namespace, kind: kind, types: types, itemsMax: items, bytesMax: bytes, metaBytesMax: metaBytes,
      packetID: packetID(), unixMilliseconds: time.unixMilliseconds)
  }

  var receipt: Disposition.Receipt {
    .init(unixMilliseconds: time.unixMilliseconds, attempts: 1, wasDuplicate: false)
  }
}

extension ClaimedPacket {
  /// The numbers of its reports, in their order.
  var numbers: [Int] {
    rows.compactMap { (try? JSONValue(parsing: $0))?["n"]?.int }
  }
}

extension ReportStore {
  func claim(_ claim: Claim) throws -> ClaimedPacket? { try turn(UploadCommit(claims: [claim])).first ?? nil }
  func settle(_ disposition: Disposition) throws { _ = try turn(UploadCommit(dispositions: [disposition])) }

  func ledger(_ namespace: NamespaceName = Rig.shop, _ kind: RowKind = .meta) throws -> Ledger {
    try status()[namespace]?[kind]?.ledger ?? Ledger()
  }
}
