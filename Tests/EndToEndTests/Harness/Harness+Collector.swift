import Foundation
import PrismProtocol
import PrismTestSupport
import Testing

extension Harness {
  /// A row as it lies at the collector.
  struct Arrived {
    let reportID: String
    let number: Int
    let textHex: String
    let payloadHex: String
  }

  /// The reports of a kind (`meta` or `payload`) that the collector holds.
  func arrived(_ namespace: String, _ kind: String) async throws -> [Arrived] {
    let rows = try await query(
      """
      SELECT report_id, json_extract(meta, '$.n'), lower(hex(json_extract(meta, '$.text'))), lower(hex(payload))
      FROM report WHERE namespace = '\(namespace)' AND kind = '\(kind)' ORDER BY id
      """)
    return rows.map { Arrived(reportID: $0[0], number: Int($0[1]) ?? -1, textHex: $0[2], payloadHex: $0[3]) }
  }

  /// Holds what came to what was sent: these numbers, each once, byte for byte.
  func expectArrived(_ namespace: String, _ kind: String, _ numbers: [Int]) async throws {
    let rows = try await arrived(namespace, kind)
    #expect(rows.map(\.number).sorted() == numbers, "\(namespace) \(kind)")
    for row in rows {
      let isWhole = row.textHex == Sample.textHex(row.number)
      let isSamePayload = row.payloadHex == (kind == "payload" ? Sample.payloadHex(row.number) : "")
      if !isWhole || !isSamePayload { Issue.record("\(namespace) \(kind) \(row.number) is not what was sent") }
    }
  }

  /// Asks the collector's database, with a table `report` of all reports that are there now.
  func query(_ sql: String) async throws -> [[String]] {
    let folder = TemporaryFolder.make()
    defer { try? FileManager.default.removeItem(atPath: folder) }  // a left folder harms no test
    try await ReportTable.write(of: "\(collectorState)/collector.db", to: "\(folder)/reports.db")
    let ran = try await Programs.run(
      "sqlite3",
      [
        "-readonly", "-separator", "|", "-cmd", ".timeout 10000", "-cmd", "ATTACH '\(folder)/reports.db' AS reports",
        "\(collectorState)/collector.db", sql,
      ])
    try #require(ran.exitCode == 0, "\(ran.error)")
    return ran.lines.map { $0.split(separator: "|", omittingEmptySubsequences: false).map { String($0) } }
  }
}
