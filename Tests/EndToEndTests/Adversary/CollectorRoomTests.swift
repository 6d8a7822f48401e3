import Foundation
import Glibc
import PrismBase
import PrismClient
import PrismPacket
import PrismProtocol
import PrismTestSupport
import Testing

/// Each path of the collector's API, asked over and over by 16 readers with 8 connections each, who read the answers or don't.
/// The collector stays below 160 MiB in a memory cgroup as the unit's, takes a device's packets beside them, and ends after
/// SIGTERM.
///
/// The long form (`make soak-adversary`) also measures times.
@Suite(.serialized, .enabled(if: Crowd.isPermitted, Crowd.why), .timeLimit(.minutes(30)))
struct CollectorRoomTests {
  private static let isLong = soakFactor > 1
  private static let reports = isLong ? 200_000 : 20_000
  private static let packets = isLong ? 1000 : 40
  private static let users: UInt32 = 16
  /// `{name}` and the like of a path.
  private static let values = ["id": "1", "namespace": "shop", "table": "part"]
  /// The dearest questions that a path takes.
  private static let queries = [
    "/reports": ["limit=1000", "limit=1000&meta=text%20contains%20zzz"],
    "/histogram": ["buckets=500&by=type"],
    "/aggregate": ["buckets=100&by=type&key=n"],
    "/export": ["format=csv", "format=ndjson"],
    "/records": ["namespace=shop&limit=1000", "table=part&namespace=shop&field=a%3Dx"],
    "/records/{namespace}/{table}": ["device=e2e-device&limit=1000"],
    "/devices": ["limit=1000&where=seen%20%3C%207d", "search=e2e"],
    "/device": ["id=e2e-device"],
    "/crashes": ["limit=1000"],
  ]

  @Test("memory, a device's packets and the end are bounded", arguments: [true, false])
  func asked(reads: Bool) async throws {
    let cage = MemoryCage()
    defer { cage?.remove() }
    let harness = try await Harness(
      namespaces: ["shop": "url: URL\nrecords: [{table: part}]\nmonitorList: [{type: sample}, {type: appCrash}]\n"],
      collectorPrefix: cage?.words ?? [])
    do {
      try await check(harness, reads: reads)
    } catch {
      print(await harness.diagnosis)
      await harness.stop()
      throw error
    }
    await harness.stop()
  }

  private func check(_ harness: Harness, reads: Bool) async throws {
    let (port, tokens) = (try Harness.freePort(), "\(harness.folder)/readers")
    let words = (0..<Self.users).map { "token-of-reader-number-\($0)" }
    try words.map { $0 + "\n" }.joined().write(toFile: tokens, atomically: true, encoding: .utf8)
    chmod(tokens, 0o600)
    chmod(harness.folder, 0o755)
    try await harness.startCollector(["--reader-token-file", tokens, "--reader-listen", "127.0.0.1:\(port)"])
    try await fill(harness)
    let process = try #require(harness.collectorProcess)
    let before = try Crowd.descriptors(process)
    let readers = try words.enumerated().map { number, token in
      try Crowd.ask(
        Self.paths(), reads: reads, of: port, token: token, by: Crowd.firstAttacker + UInt32(number),
        in: harness.folder,
        seconds: 3600)
    }
    try await waitUntil("they ask") { try Crowd.descriptors(process) >= before + 64 }
    let address = try #require(UInt16(harness.collectorAddress.split(separator: ":")[1]))
    let service = try await Crowd.service(of: address, try Self.packets(harness), in: harness.folder)
    let peak = try Crowd.peakBytes(process)
    let duration = try await ContinuousClock().measure { try await harness.endCollector(SIGTERM) }
    print(
      "collector's room, answers \(reads ? "" : "un")read: \(peak >> 20) MiB, p99 \(service.p99Ms) ms, SIGTERM \(duration)"
    )
    #expect(service.answers == Self.packets && service.refused == 0)
    #expect(peak <= 160 << 20, "\(peak >> 20) MiB at most")
    if Self.isLong {
      #expect(service.p99Ms <= 50)
      #expect(duration < .seconds(5))
    }
    for reader in readers { try await reader.end(SIGKILL) }
  }

  /// Every path of docs/api.yaml that is read.
  private static func paths() throws -> [String] {
    let page = try String(
      contentsOf: URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../../docs/api.yaml"),
      encoding: .utf8)
    var paths: [String] = []
    var path = ""
    for line in page.split(separator: "\n") {
      if line.hasPrefix("  /"), line.hasSuffix(":") { path = String(line.dropFirst(2).dropLast()) }
      guard line.hasPrefix("    get:"), !path.isEmpty else { continue }
      let filled = path.split(separator: "/").map { part in
        part.hasPrefix("{") ? values[String(part.dropFirst().dropLast())] ?? "x" : String(part)
      }
      let whole = "/api/v1/" + filled.joined(separator: "/")
      paths += [whole] + (queries[path] ?? []).map { "\(whole)?\($0)" }
    }
    try #require(paths.count > 25, "\(paths)")
    return paths + ["/metrics", "/reports?limit=1000", "/devices", "/"]
  }

  /// Reports, crashes and records of one device.
  private func fill(_ harness: Harness) async throws {
    try await harness.startDaemon()
    let client = harness.client()
    for first in stride(from: 0, to: Self.reports, by: 5000) {
      let reports = (first..<(first + 5000)).map { number in
        Report(
          ReportType(number.isMultiple(of: 50) ? "appCrash" : "sample")!, in: NamespaceName("shop")!,
          meta: ["n": .int(number), "text": .string(String(repeating: "\(number) ", count: 20))])
      }
      for answer in try await client.report(contentsOf: reports) {
        guard case .stored = answer else { throw Failed("a report was not stored: \(answer)") }
      }
    }
    try await Crowd.fill(harness, count: 300)
    #expect(try await harness.prismctl("flush", "--wait").exitCode == 0)
    try await harness.endDaemon(SIGTERM)
  }

  /// Whole requests of another device, each for one report.
  private static func packets(_ harness: Harness) throws -> [[UInt8]] {
    let text = try String(contentsOfFile: "\(harness.folder)/main.key", encoding: .utf8)
    let key = Secret(try #require(Hex.decode(text.utf8.filter { $0 > 0x20 })))
    let cipher: Cipher = key.bytes.count == 32 ? .aes256GCM : .aes128GCM
    let writer = try PacketWriter(cipher: cipher, keyID: "main", key: key)
    var random = SystemRandomNumberGenerator()
    let now = Int64(Date().timeIntervalSince1970 * 1000)
    return try (0..<packets).map { number in
      let headers = PacketHeaders(
        deviceID: "good", namespace: .prism, packetID: PacketID(unixMilliseconds: now, using: &random), kind: .meta,
        itemCount: 1, sentTime: now, format: BlockFormat(cipher: cipher, keyID: "main", encoding: .gzip))
      let packet = try writer.write(headers, metas: Array("{\"n\":\(number)}".utf8), payloads: [])
      let lines =
        ["POST /prism/meta HTTP/1.1", "Host: localhost", "Content-Length: \(packet.body.count)"]
        + packet.headers.fields.map { "\($0.name): \($0.value)" }
      return Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8) + packet.body
    }
  }
}
