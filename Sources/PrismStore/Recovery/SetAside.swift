import Glibc
import PrismBase

/// Moves a database that can't be used out of the way, and back.
///
/// The file `prism.db.adopt` in the state folder names the move that is under way. After a kill between two steps, the
/// next start finishes the move. The file is removed once the new database records what it has to bring over, or once
/// the old one is back.
struct SetAside {
  /// How a file came to be set aside; part of its name.
  enum Cause: String {
    case corrupt
    /// Not a database of the store's.
    case foreign
  }

  /// The move that is under way.
  struct Intent: Equatable {
    enum Direction: String {
      /// Away, because SQLite can't use it.
      case damaged
      /// Away, because starts died.
      case deaths
      /// Back in its place, where nothing is.
      case back
    }

    /// In the folder.
    var name: String
    var direction: Direction
  }

  /// Older ones that hold nothing more are deleted when another is set aside.
  static let filesMax = 3
  /// Begins the names of databases of the store's that hold reports which are not in the new one.
  static let corruptPrefix = "prism.db.\(Cause.corrupt.rawValue)-"
  /// Begins the names of those whose reports are all in the new one.
  static let salvagedPrefix = "prism.db.salvaged-"
  private static let foreignPrefix = "prism.db.\(Cause.foreign.rawValue)-"
  /// Of the files that go with a database.
  private static let companions = ["-wal", "-shm", TableOfContents.suffix]

  let folder: String
  private let path: String
  private let onMove: (@Sendable () -> Void)?
  private var intentPath: String { folder + "/prism.db.adopt" }

  init(_ options: StoreOptions) {
    (folder, path, onMove) = (options.folder, options.databasePath, options.onMove)
  }

  /// nil: nothing is being moved.
  func pending() -> Intent? {
    guard let words = SideFile.text(intentPath)?.split(whereSeparator: \.isWhitespace).map({ String($0) }),
      let name = words.first, name.hasPrefix("prism.db."), !name.contains("/")
    else { return nil }
    let direction = words.count > 1 ? Intent.Direction(rawValue: words[1]) : nil
    return Intent(name: name, direction: direction ?? .damaged)
  }

  /// Begins to move the database away; `finish` does it.
  /// - Returns: its new name, in the folder.
  func begin(_ cause: Cause, _ direction: Intent.Direction, unixMilliseconds: Int64) -> String {
    var time = unixMilliseconds
    func name() -> String { "prism.db.\(cause.rawValue)-\(time)" }
    while access(folder + "/" + name(), F_OK) == 0 { time += 1 }
    let name = name()
    note(Intent(name: name, direction: direction))
    return name
  }

  private func note(_ intent: Intent) {
    SideFile.write("\(intent.name) \(intent.direction.rawValue)\n", to: intentPath)
    onMove?()
  }

  /// Moves what has not been moved yet. Again is harmless.
  func finish(_ name: String) {
    let target = folder + "/" + name
    // The log first: without its database it is of no use to anybody, and would be deleted as a left-over.
    guard access(target, F_OK) != 0 else { return }
    for suffix in ["-wal", TableOfContents.suffix, ""] { move(path + suffix, to: target + suffix) }
    unlink(path + "-shm")
    SideFile.syncFolder(folder)
  }

  private func move(_ source: String, to target: String) {
    guard access(source, F_OK) == 0 else { return }
    rename(source, target)
    onMove?()
  }

  /// Puts a database back that was set aside. The one in its place is deleted: it holds nothing.
  func putBack(_ name: String) {
    // Before the intent says so: from then on a log beside the path is the one that was put back.
    for suffix in [""] + Self.companions {
      unlink(path + suffix)
      onMove?()
    }
    SideFile.syncFolder(folder)
    note(Intent(name: name, direction: .back))
    finishBack(name)
  }

  /// Moves back what has not been moved yet. Again is harmless.
  func finishBack(_ name: String) {
    let source = folder + "/" + name
    for suffix in ["-wal", TableOfContents.suffix, ""] { move(source + suffix, to: path + suffix) }
    done()
  }

  /// The new database knows all that it has to bring over, or the old one is back.
  func done() {
    SideFile.syncFolder(folder)
    unlink(intentPath)
    onMove?()
    SideFile.syncFolder(folder)
  }

  /// All reports of these are in the new database.
  func markSalvaged(_ names: [String]) {
    for name in names where name.hasPrefix(Self.corruptPrefix) {
      let new = Self.salvagedPrefix + name.dropFirst(Self.corruptPrefix.count)
      for suffix in [""] + Self.companions { rename("\(folder)/\(name)\(suffix)", "\(folder)/\(new)\(suffix)") }
    }
  }

  /// Databases that hold reports which nothing brings over, but for those in `known`.
  func leftBehind(besides known: [String]) -> [String] {
    databases { $0.hasPrefix(Self.corruptPrefix) }.filter { !known.contains($0) }
  }

  /// Deletes the oldest beyond `filesMax` of those that hold no report that is not in the new database.
  func prune() -> [String] {
    let names = databases { $0.hasPrefix(Self.salvagedPrefix) || $0.hasPrefix(Self.foreignPrefix) }
    let old = Array(names.dropLast(Self.filesMax))
    for name in old {
      for suffix in [""] + Self.companions { unlink("\(folder)/\(name)\(suffix)") }
    }
    return old
  }

  /// The oldest first.
  private func databases(_ isWanted: (String) -> Bool) -> [String] {
    SideFile.names(in: folder)
      .filter { name in isWanted(name) && Self.companions.allSatisfy { !name.hasSuffix($0) } }
      .sorted { Self.time($0) < Self.time($1) }
  }

  private static func time(_ name: String) -> Int64 { name.split(separator: "-").last.flatMap { Int64($0) } ?? 0 }
}
