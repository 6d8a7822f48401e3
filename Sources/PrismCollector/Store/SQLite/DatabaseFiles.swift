import Glibc
import PrismBase
import PrismRecovery
import PrismSQLite

/// The files of `collector.db` in the state folder, and those that were set aside.
struct DatabaseFiles: Sendable {
  static let aside = "damaged"

  let place: DatabasePlace

  init(folder: String) { place = DatabasePlace(folder, "collector.db", pageBytes: PacketSchema.pageBytes) }

  var path: String { place.path }
  func path(of name: String) -> String { place.path(of: name) }
  /// The mark of a run.
  var marker: StartMarker { StartMarker(path: place.folder + "/collector.run", isKept: true) }

  /// A file that `migrate --from` makes at its end: a collector that started here would be a second store of the same identity.
  var carriedMark: String { path(of: "carried") }
  var isCarried: Bool { access(carriedMark, F_OK) == 0 }

  /// Only the owner may read them.
  func protect() {
    for suffix in ["", "-wal", "-shm"] { chmod(path + suffix, 0o600) }
  }

  // MARK: Setting aside

  /// Finishes a move that a kill interrupted: the log was moved, the file was not. A log whose database was brought over and
  /// deleted looks alike, but the database in its place knows it.
  func finishSettingAside() {
    for file in SideFile.names(in: place.folder) where file.hasPrefix("\(place.name).\(Self.aside)-") {
      if file.hasSuffix(LogRepair.copySuffix) { unlink(path(of: file)) }
      let name = String(file.dropLast(4))
      guard file.hasSuffix("-wal"), access(path(of: name), F_OK) != 0, !knows(name) else { continue }
      place.move(to: name)
    }
  }

  private func knows(_ name: String) -> Bool {
    guard place.bytes ?? 0 > 0, let connection = try? SQLiteConnection(.init(path: path, isReadOnly: true)) else {
      return false
    }
    // A database that can't be read is damaged: it is the one that was being moved.
    return (try? connection.firstInt("SELECT count(*) FROM imports WHERE file = '\(name)'")) == 1
  }

  /// Databases that were set aside, the oldest first, and when, in milliseconds since 1970.
  var asides: [(name: String, unixMilliseconds: Int64)] { place.aside(Self.aside) }
}
