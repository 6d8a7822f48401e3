import PrismHTTP

/// Reports of one answer, and where the next one goes on.
struct ReportPage: Sendable {
  /// A page ends behind as many bytes of metas.
  static let bytesMax = 4 * 1_048_576

  private let limit: Int
  private(set) var reports: [StoredReport] = []
  private var bytes = 0
  var reach = ReportScan.Reach.whole

  init(limit: Int) { self.limit = limit }

  mutating func add(_ found: [StoredReport]) {
    reports += found
    bytes += Self.bytes(found)
  }

  /// It ends before the last report of its filter, as far as is known.
  var isCut: Bool { reports.count >= limit || bytes >= Self.bytesMax / 2 }

  /// A store ends its page behind some bytes, too: then there may be more in the same window.
  static func mayBeCut(_ found: [StoredReport], limit: Int) -> Bool {
    found.count >= limit || bytes(found) >= bytesMax / 2
  }

  private static func bytes(_ reports: [StoredReport]) -> Int { reports.reduce(0) { $0 + $1.meta.count } }

  /// The id that the next page begins behind; nil: this was the last one.
  var next: Int64? { isCut ? reports.last?.id : isPartial ? reach.id : nil }

  /// The time was up before as many reports were found as were wanted.
  var isPartial: Bool { reach.timeIsUp && !isCut }

  /// Of `GET /reports`. `next` is where a reader goes on: behind the last report, or behind those that were read in vain.
  var answer: HTTPResponse {
    var body = Array(#"{"reports":["#.utf8)
    for (index, report) in reports.enumerated() {
      if index > 0 { body.append(UInt8(ascii: ",")) }
      body += report.jsonText
    }
    let end = (next ?? reports.last?.id).map { String($0) } ?? "null"
    body += Array("],\"next\":\(end)\(isPartial ? #","partial":true"# : "")}\n".utf8)
    return HTTPResponse(status: 200, headers: [("Content-Type", "application/json")], body: body)
  }
}
