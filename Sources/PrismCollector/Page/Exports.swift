import PrismBase
import PrismHTTP
import PrismOutputs

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
  /// Of one reading. A part that is begun is read to its end, for less than a second.
  private static let exportBudget: Duration = .seconds(2)

  /// `GET /export`: newest first. `Prism-Next` is there where there are more: the `before` of the next file.
  func export(_ request: PageRequest) async throws(CollectorRefusal) -> HTTPResponse {
    let format = try request.word("format", ExportFormat.self) ?? .ndjson
    let limit = try request.number("limit", in: 1...10_000) ?? 10_000
    var wanted = try ReportFilter(request)
    wanted.isNewestFirst = true
    let question = wanted
    return try await collector.access.page.exports.make { (file: inout ExportFile) async throws(CollectorRefusal) in
      var (question, lines, next) = (question, ExportLines(format), Int64?.none)
      if format == .csv {
        // Its first line has all fields.
        var last: Int64?
        let rest = try await forEachPage(question, limit) { page in
          lines.note(page)
          question.before = question.before ?? page.first.map { $0.id + 1 }
          last = page.last?.id ?? last
          return !lines.isOver
        }
        guard !lines.isOver else { throw CollectorRefusal(400, ExportLines.overCause) }
        if let rest { (next, question.after) = (rest, (last ?? .max) - 1) }
        try file.append(lines.head())
      }
      let rest = try await forEachPage(question, limit) { page throws(CollectorRefusal) in
        for report in page { try file.append(lines.line(report)) }
        return file.byteCount < Self.exportBytesMax
      }
      next = rest ?? next
      let headers = [
        (name: "Content-Type", value: format.contentType),
        (name: "Content-Disposition", value: "attachment; filename=\"reports.\(format.rawValue)\""),
      ]
      return headers + (next.map { [(name: "Prism-Next", value: String($0))] } ?? [])
    }
  }

  /// The newest reports of a filter, page by page, for as long as an export may take.
  /// - Parameter take: false ends it.
  /// - Returns: the id before which it goes on; nil: there are no more.
  private func forEachPage(
    _ filter: ReportFilter, _ limit: Int, _ take: ([StoredReport]) throws(CollectorRefusal) -> Bool
  ) async throws(CollectorRefusal) -> Int64? {
    var (filter, count, isWanted) = (filter, 0, true)
    let end = collector.time.uptime + Self.exportBudget
    repeat {
      filter.limit = min(1000, limit - count)
      let page = try await page(filter)
      isWanted = try take(page.reports)
      count += page.reports.count
      guard let next = page.next else { return nil }
      filter.before = next
    } while isWanted && count < limit && collector.time.uptime < end
    return filter.before
  }
}
