/// How much may still be written to the disk of a folder, asked for before every commit.
struct SpaceGauge {
  /// Other programs can't write this amount within `trusted`.
  private static let plentyBytes = 1 << 30
  private static let trusted: Duration = .milliseconds(10)

  private let folder: String
  private var last: (bytes: Int, at: Duration)?

  init(_ folder: String) { self.folder = folder }

  /// The free bytes; `Int.max` if the system does not say. On a disk with plenty the figure may be some milliseconds
  /// old.
  mutating func freeBytes(now: Duration) -> Int {
    if let last, last.bytes > Self.plentyBytes, now - last.at < Self.trusted { return last.bytes }
    let bytes = DiskSpace.free(folder) ?? .max
    last = (bytes, now)
    return bytes
  }
}
