import PrismBase

/// Why the store could not do as it was asked. Nothing was changed, unless `uncertain` says otherwise.
public enum StoreError: Error, Equatable, CustomStringConvertible {
  /// Another process holds the state folder.
  case locked(folder: String)
  /// The database was written by a newer prism; it is left as it is.
  case newerVersion(path: String, found: Int, known: Int)
  case folder(path: String, problem: String)
  /// No space left on the disk.
  case diskFull
  /// A commit failed in a way that leaves open whether it holds. The store has opened the file again and shows what it
  /// found there.
  case uncertain(String)
  /// The database can't be read or written; each later call tries again.
  case unavailable(String)
  case noSuchPacket

  public var description: String {
    switch self {
    case .locked(let folder):
      StateLock.Failure.locked(folder: folder).description
    case .newerVersion(let path, let found, let known):
      "\(path) is of version \(found), and this prismd knows versions up to \(known): install the newer prismd again, or "
        + "move the file away to begin a new one"
    case .folder(let path, let problem): StateLock.Failure.folder(path: path, problem: problem).description
    case .diskFull: "no space left on the disk of the state folder"
    case .uncertain(let detail): "a commit failed, and whether it holds was open: \(detail)"
    case .unavailable(let detail): "the database can't be used: \(detail)"
    case .noSuchPacket: "no packet in flight has this id"
    }
  }

  static func lock(_ folder: String) throws(StoreError) -> StateLock {
    do { return try StateLock(folder: folder) } catch {
      switch error {
      case .locked(let folder): throw .locked(folder: folder)
      case .folder(let path, let problem): throw .folder(path: path, problem: problem)
      }
    }
  }
}
