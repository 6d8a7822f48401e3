import Foundation
import PrismClient
import PrismProtocol
import Testing

/// `prismctl config diff` against a daemon that holds rows.
@Suite struct DiffTests {
  private static let list = "monitorList: [{type: sample, isUploadPayload: true}, {type: other}]\n"

  private func store(_ harness: Harness) async throws {
    let client = harness.client()
    for number in 0..<5 { _ = try await client.report(Sample.report(number, in: "shop")) }
    var other = Sample.report(5, in: "shop")
    other.type = ReportType("other")!
    _ = try await client.report(other)
    var paid = Sample.report(6, in: "shop")
    paid.payload = [UInt8](repeating: 7, count: 1_500_000)
    _ = try await client.report(paid)
  }

  @Test("says of each change what it would do to the rows that are stored, and changes nothing")
  func rows() async throws {
    let old = "appVersion: \"1\"\nmaxBodyMByte: 2\n" + Self.list
    try await withHarness(namespaces: ["shop": old, "old": Self.list]) { harness in
      try await harness.startDaemon()
      try await store(harness)
      _ = try await harness.client().report(Sample.report(9, in: "old"))
      func ledgers() async throws -> [JSONValue?] {
        let status = try await harness.status()["namespaces"]
        return ["shop", "old"].flatMap { name in ["meta", "payload"].map { status?[name]?[$0]?["ledger"] } }
      }
      let before = try await ledgers()
      #expect(before[0] != nil)

      try FileManager.default.removeItem(atPath: "\(harness.folder)/namespaces.d/old.yaml")
      let new = "appVersion: \"1\"\nmonitorList: [{type: other, onlyWifi: true}]\n"
      let copy = "\(harness.folder)/next"
      try FileManager.default.createDirectory(atPath: "\(copy)/namespaces.d", withIntermediateDirectories: true)
      for file in ["prismd.yaml", "main.key"] {
        try FileManager.default.copyItem(atPath: "\(harness.folder)/\(file)", toPath: "\(copy)/\(file)")
      }
      try new.write(toFile: "\(copy)/namespaces.d/shop.yaml", atomically: true, encoding: .utf8)
      try "retired: true\n".write(toFile: "\(copy)/namespaces.d/old.yaml", atomically: true, encoding: .utf8)
      let told = try await harness.prismctl("config", "diff", "\(copy)/prismd.yaml")
      #expect(told.exitCode == 0, "\(told.error)")
      #expect(told.lines.contains("old: removed: 1 row stays until it expires, and is sent when it comes back"))
      #expect(told.lines.contains { $0.hasPrefix("shop: maxBodyMByte 2 -> 1: 1 row would be removed, for") })
      let list = try #require(told.lines.first { $0.hasPrefix("shop: monitorList ") })
      #expect(list.contains(": 1 row of other would stay while the network is metered; 6 rows of sample would still"))
      #expect(try await ledgers() == before)

      try "url: x\nmaxItem: 0\n".write(toFile: "\(copy)/namespaces.d/shop.yaml", atomically: true, encoding: .utf8)
      let faulty = try await harness.prismctl("config", "diff", "\(copy)/prismd.yaml")
      let faults = faulty.error.split(separator: "\n")
      #expect(faulty.exitCode == 78 && faults.count > 2, "a line each: \(faulty.error)")
      #expect(faults.allSatisfy { $0.hasPrefix("\(copy)/namespaces.d/shop.yaml:") }, "\(faulty.error)")
    }
  }
}
