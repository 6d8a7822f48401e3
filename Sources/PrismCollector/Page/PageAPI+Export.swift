import PrismBase
import PrismHTTP
import PrismProtocol

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
