import Foundation
import Glibc
import PrismClient
import PrismProtocol
import Testing

/// Every key that docs/configuration.md lets a reload change really changes, in a daemon that runs: each row writes
/// the key,
/// reloads, and asks the daemon's outside.
@Suite struct LiveKeyTests {
  struct Row: Sendable, CustomTestStringConvertible {
    let key: String
    /// More of prismd.yaml, and namespaces.d/shop.yaml, before and after.
    var before = "", after = "", shopBefore = shop, shopAfter = shop
    /// The effects that can be seen outside, with `before` and with `after`.
    let seen: @Sendable (Harness) async throws -> String
    let expected: [String]
    var testDescription: String { key }
  }

  private static let shop = "monitorList: [{type: sample, isUploadPayload: true}]"

  static let daemon: [Row] = [
    Row(
      key: "ingest.mode", before: "$ingest: mode: 0600", after: "$ingest: mode: 0666", seen: { mode($0.ingest) },
      expected: ["600", "666"]),
    Row(
      key: "ingest.maxConnections", before: "$ingest: maxConnections: 1", seen: secondConnection,
      expected: ["busy", "stored"]),
    Row(
      key: "ingest.maxConnectionsPerUser", after: "$ingest: maxConnectionsPerUser: 1", seen: secondConnection,
      expected: ["stored", "busy"]),
    // With 16 MiB a user's share has no room for the base64 of a payload of 3 MiB.
    Row(
      key: "ingest.memoryMByte", before: "$ingest: memoryMByte: 16", shopBefore: shop + "\nmaxBodyMByte: 3",
      shopAfter: shop + "\nmaxBodyMByte: 3", seen: sendLargeLine, expected: ["payload_too_large", "stored"]),
    Row(
      key: "limits.maxItem", before: "limits: {maxItem: 5000}", after: "limits: {maxItem: 6000}",
      shopBefore: shop + "\nmaxItem: 5000", shopAfter: shop + "\nmaxItem: 6000",
      seen: { try await $0.inForce("maxItem", of: "shop")?.text ?? "" }, expected: ["5000", "6000"]),
    Row(
      key: "common", before: "common: {region: eu}", after: "common: {region: us}",
      seen: { try await lastMeta($0, "region") },
      expected: ["eu", "us"]),
    Row(
      key: "device.id", after: "device: {id: e2e-device-2}",
      seen: { try await lastMeta($0, "SYS_DEVICE_ID") }, expected: ["e2e-device", "e2e-device-2"]),
    Row(
      key: "network.interfaces", before: #"network: {interfaces: {"*": metered}}"#,
      after: #"network: {interfaces: {"*": ignored}}"#, seen: networkKind, expected: ["metered", "none"]),
    Row(
      key: "log.level", before: "log: {level: error}", after: "log: {level: info}",
      seen: { $0.daemonLog.contains("a new configuration is in force") ? "told" : "not told" },
      expected: ["not told", "told"]),
    Row(
      key: "log.format", after: "log: {format: json}",
      seen: { $0.daemonLog.split(separator: "\n").last?.first == "{" ? "json" : "text" }, expected: ["text", "json"]),
    Row(
      key: "keys", after: "", shopAfter: shop + "\nkeyId: main\ncipher: aes-128-cbc",
      seen: { try await $0.inForce("cipher", of: "shop")?.text ?? "" },
      expected: [#""aes-128-gcm""#, #""aes-128-cbc""#]),
  ]

  static let namespace: [Row] = [
    Row(
      key: "isGather", shopAfter: shop + "\nisGather: false", seen: send, expected: ["stored", "gather_off"]),
    Row(
      key: "monitorList", shopAfter: "monitorList: [{type: other}]", seen: send, expected: ["stored", "unknown_type"]),
    Row(
      key: "maxBodyMByte", shopBefore: shop + "\nmaxBodyMByte: 2", shopAfter: shop, seen: sendPayload,
      expected: ["stored", "payload_too_large"]),
    Row(
      key: "onLargePayload", shopBefore: shop, shopAfter: shop + "\nonLargePayload: meta", seen: sendPayload,
      expected: ["payload_too_large", "stored"]),
    Row(
      key: "allow.users", shopAfter: shop + "\nallow: {users: [54321]}", seen: send, expected: ["stored", "forbidden"]),
    Row(
      key: "maxStoreMByte, onFull", shopBefore: shop + "\nmaxBodyMByte: 2",
      shopAfter: shop + "\nmaxBodyMByte: 2\nmaxStoreMByte: 1\nonFull: refuse", seen: sendPayload,
      expected: ["stored", "store_full"]),
    Row(
      key: "url", shopAfter: shop + "\nurl: http://127.0.0.1:1", seen: explain, expected: ["url", "backoff"]),
    Row(
      key: "isUpload", shopBefore: shop + "\nurl: http://127.0.0.1:1\nisUpload: false",
      shopAfter: shop + "\nurl: http://127.0.0.1:1", seen: explain, expected: ["isUpload", "backoff"]),
    Row(
      key: "maxFlowMByte", shopAfter: shop + "\nmaxFlowMByte: 7",
      seen: { try await $0.status()["namespaces"]?["shop"]?["flow"]?["allowedBytes"]?.text ?? "" },
      expected: ["20971520", "7340032"]),
  ]

  @Test("a key that a reload changes takes effect", arguments: daemon + namespace)
  func live(row: Row) async throws {
    let harness = try await Harness(namespaces: ["shop": row.shopBefore])
    do { try await check(row, harness) } catch {
      await harness.stop()
      throw error
    }
    await harness.stop()
  }

  private func check(_ row: Row, _ harness: Harness) async throws {
    try harness.writeDaemonFile(row.before)
    try await harness.startDaemon()
    for (step, expected) in row.expected.enumerated() {
      if step > 0 {
        try harness.writeDaemonFile(row.after)
        try harness.write(row.shopAfter, namespace: "shop")
        try await harness.reload()
      }
      var last = ""
      try await waitUntil("\(row.key): \(expected)", otherwise: "found \(last)") {
        last = try await row.seen(harness)
        return last == expected
      }
    }
  }

  // MARK: What can be seen

  private static func mode(_ path: String) -> String {
    var status = stat()
    return stat(path, &status) == 0 ? String(status.st_mode & 0o777, radix: 8) : "nothing"
  }

  /// A report over a connection beside an open one.
  private static let secondConnection: @Sendable (Harness) async throws -> String = { harness in
    let first = harness.client()
    _ = try await first.report(Sample.report(1, in: "shop"))
    let answer = try await send(harness)
    _ = try await first.report(Sample.report(2, in: "shop"))  // it is still open
    return answer
  }

  private static let send: @Sendable (Harness) async throws -> String = { harness in
    do { return word(try await harness.client().report(Sample.report(3, in: "shop"))) } catch {
      // A connection over the limit is refused before it is greeted.
      return "\(error)".contains("too many connections") ? "busy" : "\(error)"
    }
  }

  private static let sendPayload: @Sendable (Harness) async throws -> String = { harness in
    var report = Sample.report(4, in: "shop")
    report.payload = [UInt8](repeating: 7, count: 1_500_000)
    return word(try await harness.client().report(report))
  }

  /// A payload of 2.8 MB in base64, over `nc`.
  private static let sendLargeLine: @Sendable (Harness) async throws -> String = { harness in
    let payload = String(repeating: "QUFB", count: 950_000)
    let line = #"{"namespace":"shop","type":"sample","meta":{"n":1},"payload":"\#(payload)"}"# + "\n"
    let ran = try await Programs.run("nc", ["-UN", harness.ingest], input: line)
    let answer = try JSONValue(parsing: Array((ran.lines.first ?? "{}").utf8))
    return answer["code"]?.string ?? answer["status"]?.string ?? "nothing"
  }

  private static func word(_ answer: ReportAnswer) -> String {
    switch answer {
    case .stored: "stored"
    case .sampled: "sampled"
    case .refused(let refusal): refusal.code.rawValue
    }
  }

  /// The key's value in the meta of one more report.
  private static func lastMeta(_ harness: Harness, _ key: String) async throws -> String {
    _ = try await harness.client().report(Sample.report(5, in: "shop"))
    let rows = try await harness.prismctl("export", "--namespace", "shop").lines
    let row = try JSONValue(parsing: Array((rows.last ?? "{}").utf8))
    return row["meta"]?[key]?.string ?? "none"
  }

  private static let networkKind: @Sendable (Harness) async throws -> String = { harness in
    // Without a default route there is nothing to count as anything.
    let ran = try await harness.prismctl("network", "--json")
    let network = try JSONValue(parsing: Array(ran.output.utf8))["network"]
    return network?["reason"]?.string == "no usable default route" ? "metered" : network?["kind"]?.string ?? ""
  }

  private static let explain: @Sendable (Harness) async throws -> String = { harness in
    _ = try await harness.client().report(Sample.report(6, in: "shop"))
    let text = try await harness.prismctl("explain", "shop", "sample").lines.first ?? ""
    return text.split(separator: ":").dropFirst().first.map { $0.trimmingCharacters(in: .whitespaces) } ?? text
  }
}
