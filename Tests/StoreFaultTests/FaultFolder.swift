import Glibc
import PrismBase
import PrismProtocol
import PrismStore
import PrismTestSupport

/// A folder in memory, where a thousand databases a second can be made.
final class FaultFolder: Sendable {
  let path: String

  init() {
    path = TemporaryFolder.make(in: "/dev/shm")
  }

  deinit {
    clear()
    rmdir(path)
  }

  func clear() {
    for name in names { unlink("\(path)/\(name)") }
  }

  var names: [String] {
    guard let folder = opendir(path) else { return [] }
    defer { closedir(folder) }
    var names: [String] = []
    while let entry = readdir(folder) {
      names.append(
        withUnsafePointer(to: &entry.pointee.d_name) { pointer in
          pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
        })
    }
    return names
  }

  static func write(_ text: String, to path: String) {
    let descriptor = Glibc.open(path, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
    Glibc.write(descriptor, text, text.utf8.count)
    close(descriptor)
  }

  static func read(_ path: String) -> String {
    let descriptor = Glibc.open(path, O_RDONLY)
    guard descriptor >= 0 else { return "" }
    defer { close(descriptor) }
    var bytes = [UInt8](repeating: 0, count: 4096)
    let count = Glibc.read(descriptor, &bytes, 4096)
    return String(decoding: bytes.prefix(max(0, count)), as: UTF8.self)
  }

  static func size(_ path: String) -> Int {
    var facts = stat()
    return stat(path, &facts) == 0 ? Int(facts.st_size) : 0
  }

  /// Keeps the database and its log as a `kill -9` now would leave them.
  func keepAsKilled() {
    for name in ["prism.db", "prism.db-wal", "prism.run"] { Self.copy("\(path)/\(name)", to: "\(path)/kept-\(name)") }
  }

  /// Once the store that was killed is closed: puts back what it left.
  func restoreKilled() {
    for name in ["prism.db", "prism.db-wal", "prism.run"] { rename("\(path)/kept-\(name)", "\(path)/\(name)") }
  }

  /// Copies every file but the lock and the log's index, which the end of the last process takes away.
  func copy(to folder: FaultFolder) {
    for name in names where !name.hasPrefix(".") && name != "prism.lock" && !name.hasSuffix("-shm") {
      Self.copy("\(path)/\(name)", to: "\(folder.path)/\(name)")
    }
  }

  private static func copy(_ source: String, to target: String) {
    let (input, output) = (Glibc.open(source, O_RDONLY), Glibc.open(target, O_WRONLY | O_CREAT | O_TRUNC, 0o600))
    defer {
      close(input)
      close(output)
    }
    guard input >= 0, output >= 0 else { return }
    var bytes = [UInt8](repeating: 0, count: 65536)
    while case let count = Glibc.read(input, &bytes, bytes.count), count > 0 { Glibc.write(output, bytes, count) }
  }

  /// - Parameter segmentBytes: small, so that the rows of a run are in many tables, which are emptied.
  /// - Parameter time: the log is copied into the file by it; nil: whenever that may be done.
  func open(
    vfs: String? = nil, durability: StoreOptions.Durability = .full, time: ManualTime? = nil,
    segmentBytes: Int = 8192
  ) async throws -> ReportStore {
    var options = StoreOptions(folder: path)
    (options.vfs, options.durability, options.ballastBytes) = (vfs, durability, 0)
    options.segmentBytes = segmentBytes
    if let time { options.time = time } else { options.checkpointInterval = .zero }
    options.log = Logger(write: { _ in })
    return try await ReportStore.openOnceFree(options)
  }
}

extension ReportStore {
  /// The numbers of every report that the store holds, in flight or waiting; nil for one that is not what was stored.
  func held() async throws -> [Int?] {
    var packets: [ClaimedPacket] = []
    for packet in try inFlight(Reports.namespace, .meta) {
      if let rows = try read(packet.id) { packets.append(rows) }
    }
    while let packet = try turn(UploadCommit(claims: [Reports.claim()])).first ?? nil { packets.append(packet) }
    return packets.flatMap { packet in
      packet.rowTexts.map { Reports.number(in: $0) }
    }
  }

  func isBalanced() async throws -> Bool {
    try status().values.allSatisfy { kinds in kinds.values.allSatisfy(\.ledger.isBalanced) }
  }
}
