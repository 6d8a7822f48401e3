import PrismBase
import PrismHTTP
import PrismProtocol
import Synchronization

/// The exports that are made and sent now. One that is large waits in a file for its reader, however slowly that one reads.
final class Exports: Sendable {
  /// That are made at a time: each holds a page of reports in memory.
  static let buildsMax = 4
  /// That are made or sent at a time: each may have 32 MiB on the disk.
  static let openMax = 16

  private let folder: String
  private static let refusal = "too many exports are made or sent; try again"
  private let builds = ReadGate(countMax: buildsMax, refusal, retryAfterSeconds: 5)
  private let open = ReadGate(countMax: openMax, refusal, retryAfterSeconds: 5)

  init(folder: String) { self.folder = folder }

  /// - Parameter body: writes the export, and returns its headers.
  /// - Throws: 503 where too many are made or sent, or the file can't be written.
  func make(
    _ body: (inout ExportFile) async throws(CollectorRefusal) -> [(name: String, value: String)]
  ) async throws(CollectorRefusal) -> HTTPResponse {
    let (place, building) = (try open.take(), try builds.take())
    defer { withExtendedLifetime(building) {} }
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

// Reports as a file.
extension PageAPI {
  private static let exportBytesMax = 32 * 1_048_576
  /// A part that is begun is read to its end, for less than a second.
  private static let exportBudget: Duration = .seconds(4)

  /// `GET /export`: newest first. `Prism-Next` is there where there are more: the `before` of the next file.
  func export(_ request: PageRequest) async throws(CollectorRefusal) -> HTTPResponse {
    let format = try request.word("format", ExportFormat.self) ?? .ndjson
    let limit = try request.number("limit", in: 1...10_000) ?? 10_000
    var wanted = try filter(request)
    wanted.isNewestFirst = true
    let (question, started) = (wanted, collector.time.uptime)
    return try await collector.access.page.exports.make { (file: inout ExportFile) async throws(CollectorRefusal) in
      var (wanted, count, next) = (question, 0, Int64?.none)
      try file.append(format.head)
      while count < limit, file.byteCount < Self.exportBytesMax, collector.time.uptime - started < Self.exportBudget {
        wanted.limit = min(1000, limit - count)
        let page = try await page(wanted)
        for report in page.reports { try file.append(format.line(report)) }
        count += page.reports.count
        next = page.next
        guard let next else { break }
        wanted.before = next
      }
      let headers = [
        (name: "Content-Type", value: format.contentType),
        (name: "Content-Disposition", value: "attachment; filename=\"reports.\(format.rawValue)\""),
      ]
      return headers + (next.map { [(name: "Prism-Next", value: String($0))] } ?? [])
    }
  }
}
