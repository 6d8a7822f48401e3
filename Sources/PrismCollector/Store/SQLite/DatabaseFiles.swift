import Glibc
import PrismBase
import PrismSalvage

/// The files of `collector.db` in the state folder, and those that were set aside.
struct DatabaseFiles: Sendable {
  let folder: String
  var path: String { folder + "/collector.db" }
  private var mark: String { folder + "/collector.run" }
  private static let asidePrefix = "collector.db.damaged-"

  private static let bootID = SideFile.text("/proc/sys/kernel/random/boot_id")
  private static let runningMark = "running \(bootID ?? "\n")"

  /// A file that `migrate --from` makes at its end: a collector that started here would be a second store of the same identity.
  var carriedMark: String { folder + "/carried" }
  var isCarried: Bool { access(carriedMark, F_OK) == 0 }

  func path(of name: String) -> String { "\(folder)/\(name)" }
  var bytes: Int { Self.bytes(path) ?? 0 }
  /// The file is there without a byte in it, or is missing beside its own log.
  var isEmptied: Bool {
    guard let bytes = Self.bytes(path) else { return (Self.bytes(path + "-wal") ?? 0) > 0 }
    return bytes == 0
  }
  var isThere: Bool { Self.bytes(path) != nil }

  /// Only the owner may read them.
  func protect() {
    for suffix in ["", "-wal", "-shm"] { chmod(path + suffix, 0o600) }
  }

  // MARK: The mark of a run

  /// Whether the last run ended in order; nil if there was no run.
  var wasClean: Bool? { SideFile.text(mark).map { $0 == "clean\n" } }
  /// The last run was within this boot: no power was lost since.
  var isSameBoot: Bool { Self.bootID != nil && SideFile.text(mark) == Self.runningMark }
  func markRunning() { SideFile.write(Self.runningMark, to: mark) }
  func markClean() { SideFile.write("clean\n", to: mark) }

  // MARK: Setting aside

  /// Moves the database and its log. - Returns: its new name.
  func setAside(unixMilliseconds: Int64) -> String {
    var time = unixMilliseconds
    while Self.bytes(path(of: "\(Self.asidePrefix)\(time)")) != nil { time += 1 }
    move(to: "\(Self.asidePrefix)\(time)")
    return "\(Self.asidePrefix)\(time)"
  }

  /// Finishes a move that a kill interrupted: the log was moved, the file was not.
  func finishSettingAside() {
    for copy in names where copy.hasSuffix(LogRepair.copySuffix) { unlink(path(of: copy)) }
    for log in names where log.hasSuffix("-wal") && log.hasPrefix(Self.asidePrefix) {
      let name = String(log.dropLast(4))
      if Self.bytes(path(of: name)) == nil { move(to: name) }
    }
  }

  /// Databases that were set aside, the oldest first.
  var asideNames: [String] {
    names.filter { name in
      name.hasPrefix(Self.asidePrefix)
        && ["-wal", "-shm", LogRepair.copySuffix].allSatisfy { !name.hasSuffix($0) }
    }
    .sorted { ($0.split(separator: "-").last ?? "") < ($1.split(separator: "-").last ?? "") }
  }

  /// When damaged databases were set aside, in milliseconds since 1970.
  var damagedTimes: [Int64] {
    asideNames.compactMap { $0.split(separator: "-").last.flatMap { Int64($0) } }
  }

  private func move(to name: String) {
    // The log first: SQLite would delete it where its database is missing.
    rename(path + "-wal", path(of: name) + "-wal")
    unlink(path + "-shm")
    if rename(path, path(of: name)) != 0 || Self.bytes(path(of: name)) == 0 { writeHead(path(of: name)) }
    SideFile.syncFolder(folder)
  }

  /// Gives an emptied file the head of a database again, so that SQLite reads its log instead of deleting it.
  /// (https://www.sqlite.org/fileformat2.html#the_database_header)
  private func writeHead(_ path: String) {
    guard let log = SideFile.bytes(path + "-wal", bytesMax: 32), log.count == 32 else { return }
    let named = log[8..<12].reduce(0) { $0 << 8 | Int($1) }
    let pageBytes = (512...65536).contains(named) && named & (named - 1) == 0 ? named : PacketSchema.pageBytes
    var page = [UInt8](repeating: 0, count: pageBytes)
    page.replaceSubrange(0..<16, with: Array("SQLite format 3\0".utf8))
    (page[16], page[17]) = (UInt8(truncatingIfNeeded: pageBytes >> 8), pageBytes == 65536 ? 1 : 0)
    page.replaceSubrange(18..<24, with: [2, 2, 0, 64, 32, 32])
    (page[47], page[59]) = (4, 1)
    (page[100], page[105], page[106]) = (13, UInt8(truncatingIfNeeded: pageBytes >> 8), 0)
    SideFile.write(page, to: path)
  }

  private var names: [String] {
    (try? Folder.names(in: folder)) ?? []  // a folder that is missing has no files
  }

  private static func bytes(_ path: String) -> Int? {
    var facts = stat()
    return stat(path, &facts) == 0 ? Int(facts.st_size) : nil
  }
}
