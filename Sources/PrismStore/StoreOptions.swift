public import PrismBase
public import PrismRecovery

/// How the store is opened.
public struct StoreOptions: Sendable {
  /// The failures that a commit outlives.
  public enum Durability: Sendable, Equatable {
    /// A commit has been synced to the disk when it is answered.
    case full
    /// A commit outlives the process, and may be lost with the machine.
    case normal
  }

  /// The state folder; it exists.
  public var folder: String
  /// The failures that a commit outlives. Default: a loss of power.
  public var durability: Durability = .full
  /// The clocks.
  public var time: any TimeSource = SystemTime()
  /// The id of this boot; empty if it is unknown.
  public var bootID = KernelBoot.id ?? ""
  /// The log.
  public var log: Logger = Logger()

  /// At rest, the log is copied into the file this long after the last copy, or when it is larger than 1 MiB. The log's
  /// content is on the disk already, and each copy writes the same pages once more.
  public var checkpointInterval: Duration = .seconds(300)

  /// Keeps `prism.run`, for a program that stops a start from outside of the store; nil: the store makes its own.
  public var marker: StartMarker?

  // Seams for tests.
  /// A VFS that was registered under this name; nil: the system's.
  public var vfs: String?
  /// The database's size at which the disk counts as full, in pages of 4 KiB; nil: the disk decides.
  public var pagesMax: Int?
  /// Called after each step of moving a database away or back.
  public var onMove: (@Sendable () -> Void)?
  /// The reserve that is cut when the disk is full; 0 for no reserve.
  public var ballastBytes = 4 * 1024 * 1024
  /// Contexts of a namespace, the least, that are worth a walk over its rows to find which of them are still used.
  public var contextsBeforeSweep = 1024
  /// Bytes of rows that a table takes before another is begun. Delivered rows of packets below a 256th are deleted at once,
  /// those of larger ones when all of their table can be emptied. They take up to 4 times as much in a queue, and 16 times
  /// in all, or as much as the rows that are held.
  public var segmentBytes = 4 << 20

  public init(folder: String) { self.folder = folder }

  var databasePath: String { place.path }
  var place: DatabasePlace {
    DatabasePlace(
      folder, "prism.db", pageBytes: StoreDatabase.pageBytes, companions: [TableOfContents.suffix], onMove: onMove)
  }
}

extension StartMarker {
  /// Keeps `prism.run` in the state folder. - Parameter bootID: nil: the kernel's.
  public convenience init(folder: String, bootID: String? = nil) {
    self.init(path: folder + "/prism.run", isKept: false, bootID: bootID)
  }
}
