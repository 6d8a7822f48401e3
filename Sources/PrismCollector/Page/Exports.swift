import PrismBase
import PrismHTTP
import Synchronization

/// The exports that are made and sent now. One that is large waits in a file for its reader, however slowly that one reads.
final class Exports: Sendable {
  /// That are made at a time: each holds a page of reports in memory.
  static let buildsMax = 4
  /// That are made or sent at a time: each may have 32 MiB on the disk.
  static let openMax = 16

  private let folder: String
  private let state = Mutex((builds: 0, open: 0))

  init(folder: String) { self.folder = folder }

  /// A place among those that are open; given back when its answer has left.
  private final class Place: Sendable {
    private let exports: Exports
    init(_ exports: Exports) { self.exports = exports }
    deinit { exports.state.withLock { $0.open -= 1 } }
  }

  /// - Parameter body: writes the export, and returns its headers.
  /// - Throws: 503 where too many are made or sent, or the file can't be written.
  func make(
    _ body: (inout ExportFile) async throws(CollectorRefusal) -> [(name: String, value: String)]
  ) async throws(CollectorRefusal) -> HTTPResponse {
    guard let place = begin() else {
      throw CollectorRefusal(503, "too many exports are made or sent; try again", retryAfterSeconds: 5)
    }
    defer { state.withLock { $0.builds -= 1 } }
    var file = ExportFile(folder: folder)
    var response = HTTPResponse(status: 200, headers: try await body(&file))
    do throws(FileError) {
      if let pieces = try file.finish() {
        response.stream = HTTPStream(pieces, holding: place)
      } else {
        response.body = file.bytes
      }
    } catch { throw CollectorRefusal(503, "the export can't be written to the disk", retryAfterSeconds: 30) }
    return response
  }

  private func begin() -> Place? {
    let isTaken = state.withLock { state in
      guard state.builds < Self.buildsMax, state.open < Self.openMax else { return false }
      state = (state.builds + 1, state.open + 1)
      return true
    }
    return isTaken ? Place(self) : nil
  }
}

/// An export while it is made: in memory as long as it is small, and then in a file without a name.
struct ExportFile {
  private static let memoryBytesMax = 256 * 1024

  private let folder: String
  private var file: UnnamedFile?
  /// Those that are not in the file.
  private(set) var bytes: [UInt8] = []

  init(folder: String) { self.folder = folder }

  var byteCount: Int { (file?.byteCount ?? 0) + bytes.count }

  /// - Throws: 503 if the file can't be written.
  mutating func append(_ line: [UInt8]) throws(CollectorRefusal) {
    bytes += line
    guard bytes.count > Self.memoryBytesMax else { return }
    do throws(FileError) { try flush() } catch {
      throw CollectorRefusal(503, "the export can't be written to the disk", retryAfterSeconds: 30)
    }
  }

  /// - Returns: nil: all of it is in `bytes`.
  mutating func finish() throws(FileError) -> PieceFile? {
    guard file != nil else { return nil }
    try flush()
    return try file?.finish()
  }

  private mutating func flush() throws(FileError) {
    if file == nil { file = try UnnamedFile(in: folder, name: "export") }
    try file?.append(bytes)
    bytes.removeAll(keepingCapacity: true)
  }
}
