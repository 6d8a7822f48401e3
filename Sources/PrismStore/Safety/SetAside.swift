import Glibc

/// Moves a database that can't be used out of the way, and keeps a bounded number of such files.
///
/// A file in the state folder names what is being moved, so that a kill between two steps is made good by the next
/// start; it goes once the new database says what it has to bring over.
struct SetAside {
  /// How a file came to be set aside; part of its name.
  enum Cause: String {
    case corrupt
    /// Not a database of the store's.
    case foreign
  }

  /// Older ones are deleted when another is set aside.
  static let filesMax = 3
  /// Of the files that go with a database.
  private static let companions = ["-wal", "-shm", TableOfContents.suffix]

  let folder: String
  private let path: String
  private var intent: String { folder + "/prism.db.adopt" }

  init(_ options: StoreOptions) { (folder, path) = (options.folder, options.databasePath) }

  /// The name of the file whose content is to be brought over; nil: none.
  func pending() -> String? {
    guard let text = SmallStateFile.read(intent) else { return nil }
    let name = text.split(separator: "\n").first.map { String($0) } ?? ""
    return name.hasPrefix("prism.db.") && !name.contains("/") ? name : nil
  }

  /// Begins to move the database; `finish` does it.
  /// - Returns: its new name, in the folder.
  func begin(_ cause: Cause, unixMilliseconds: Int64) -> String {
    let name = "prism.db.\(cause.rawValue)-\(unixMilliseconds)"
    SmallStateFile.write(name + "\n", to: intent)
    return name
  }

  /// Moves what has not been moved yet. Again is harmless.
  func finish(_ name: String) {
    let target = folder + "/" + name
    // The log first: without its database it is of no use to anybody, and would be deleted as a left-over.
    guard access(target, F_OK) != 0 else { return }
    if access(path + "-wal", F_OK) == 0 { rename(path + "-wal", target + "-wal") }
    unlink(path + "-shm")
    rename(path + TableOfContents.suffix, target + TableOfContents.suffix)
    rename(path, target)
    SmallStateFile.syncFolder(folder)
  }

  /// The new database knows all that it has to bring over.
  func done() {
    unlink(intent)
    SmallStateFile.syncFolder(folder)
  }

  /// Deletes the oldest beyond `filesMax`, but none of `kept`.
  func prune(keeping kept: [String]) -> [String] {
    let names = SmallStateFile.names(in: folder)
      .filter { name in
        Self.companions.allSatisfy { !name.hasSuffix($0) }
          && ["prism.db.corrupt-", "prism.db.foreign-"].contains { name.hasPrefix($0) }
      }
      .sorted { ($0.split(separator: "-").last ?? "") < ($1.split(separator: "-").last ?? "") }
    let old = names.dropLast(Self.filesMax).filter { !kept.contains($0) }
    for name in old {
      for suffix in [""] + Self.companions { unlink("\(folder)/\(name)\(suffix)") }
    }
    return old
  }
}
