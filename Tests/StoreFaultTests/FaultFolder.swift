import Glibc
import PrismBase
import PrismProtocol
import PrismStore

/// A folder in memory, where a thousand databases a second can be made.
final class FaultFolder: Sendable {
  let path: String

  init() {
    var template = Array("/dev/shm/prism-fault-XXXXXX".utf8CString)
    path = String(cString: mkdtemp(&template))
  }

  deinit {
    clear()
    rmdir(path)
  }

  func clear() {
    guard let folder = opendir(path) else { return }
    defer { closedir(folder) }
    while let entry = readdir(folder) {
      let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
        pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
      }
      unlink("\(path)/\(name)")
    }
  }

  func open(vfs: String? = nil, durability: StoreOptions.Durability = .full) async throws -> ReportStore {
    var options = StoreOptions(folder: path)
    (options.vfs, options.durability, options.ballastBytes) = (vfs, durability, 0)
    options.log = Logger(write: { _ in })
    return try await ReportStore.open(options)
  }
}

extension ReportStore {
  /// The numbers of every report that the store holds, in flight or waiting; nil for one that is not what was stored.
  func held() async throws -> [Int?] {
    var packets: [ClaimedPacket] = []
    for packet in try inFlight(Reports.namespace, .meta) {
      if let rows = try read(packet.id) { packets.append(rows) }
    }
    while let packet = try turn(UploadTurn(claims: [Reports.claim()])).first ?? nil { packets.append(packet) }
    return packets.flatMap { packet in
      String(decoding: packet.metas, as: UTF8.self).split(separator: "\n").map { Reports.number(in: $0) }
    }
  }

  func isBalanced() async throws -> Bool {
    try status().values.allSatisfy { kinds in kinds.values.allSatisfy(\.ledger.isBalanced) }
  }
}
