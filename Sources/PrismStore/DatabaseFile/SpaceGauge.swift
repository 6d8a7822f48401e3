/// How much may still be written to the disk of a folder, asked for before every commit.
struct SpaceGauge {
  /// Nobody writes so much within `trusted`.
  private static let plentyBytes = 1 << 30
  private static let trusted: Duration = .milliseconds(10)

  private let folder: String
  private var last: (bytes: Int, at: Duration)?

  init(_ folder: String) { self.folder = folder }

  /// The most there can be where nobody knows. Of a disk with plenty it is what it was some milliseconds ago.
  mutating func freeBytes(now: Duration) -> Int {
    if let last, last.bytes > Self.plentyBytes, now - last.at < Self.trusted { return last.bytes }
    let bytes = DiskSpace.free(folder) ?? .max
    last = (bytes, now)
    return bytes
  }
}
