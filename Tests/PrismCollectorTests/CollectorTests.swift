import Foundation
import Glibc
import PrismBase
import PrismHTTP
import PrismPacket
import PrismProtocol
import PrismTestSupport
import Testing

@testable import PrismCollector

@Suite("The collector")
struct CollectorTests {
  static let key = Secret((0..<16).map { UInt8($0) })
  let folder: String
  let collector: Collector

  init() throws {
    folder = TemporaryFolder.make()
    collector = try Collector(
      CollectorOptions(state: folder, keys: ["main": Self.key]), log: Logger(write: { _ in }))
  }

  func remove() {
    try? FileManager.default.removeItem(atPath: folder)  // a left folder harms no test
  }

  static func context(_ kind: RowKind, device: String = "d1") -> PacketContext {
    var random = SystemRandomNumberGenerator()
    return PacketContext(
      deviceID: device, namespace: .prism, packetID: PacketID(unixMilliseconds: 1_700_000_000_000, using: &random),
      kind: kind)
  }

  static func packetHeaders(
    _ context: PacketContext, itemCount: Int, dependsOn: PacketID? = nil, ledger: String = "",
    pendingCount: Int = 0, sentTime: Int64 = 1_700_000_000_000
  ) -> PacketHeaders {
    PacketHeaders(
      deviceID: context.deviceID, namespace: context.namespace, packetID: context.packetID, kind: context.kind,
      dependsOn: dependsOn, itemCount: itemCount, ledger: ledger, pendingCount: pendingCount, sentTime: sentTime,
      format: BlockFormat(cipher: .aes128GCM, keyID: "main", encoding: .gzip))
  }

  static func request(
    _ context: PacketContext, metas: [String], payloads: [[UInt8]] = [], dependsOn: PacketID? = nil,
    ledger: String = "", pendingCount: Int = 0, sentTime: Int64 = 1_700_000_000_000,
    changing headers: [String: String?] = [:], key: Secret = CollectorTests.key
  ) throws -> HTTPRequest {
    let packetHeaders = packetHeaders(
      context, itemCount: metas.count, dependsOn: dependsOn, ledger: ledger, pendingCount: pendingCount,
      sentTime: sentTime)
    let packet = try PacketWriter(cipher: .aes128GCM, keyID: "main", key: key).write(
      packetHeaders, metas: Array(metas.joined(separator: "\n").utf8), payloads: payloads)
    var all = Dictionary(uniqueKeysWithValues: packet.headers.fields.map { ($0.name.lowercased(), $0.value) })
    for (name, value) in headers { all[name] = value }
    return HTTPRequest(
      method: .post, path: "/prism/\(context.kind.name)", query: [], headers: all.map { ($0.key, $0.value) },
      body: packet.body, peer: HTTPPeer(address: "127.0.0.1", isLocal: true))
  }

  private func get(_ path: String, _ query: [(name: String, value: String)] = []) async throws -> JSONValue {
    let request = HTTPRequest(
      method: .get, path: path, query: query, headers: [], peer: HTTPPeer(address: "127.0.0.1", isLocal: true))
    return try JSONValue(parsing: await collector.answerReader(request, isOwner: true).body)
  }

  @Test("counts by namespace and outcome, in a page that Prometheus' own checker finds nothing to say of")
  func metrics() async throws {
    defer { remove() }
    let request = try Self.request(Self.context(.meta), metas: [#"{"MONITOR_TYPE":"net","n":1}"#])
    for _ in 0..<3 { _ = await collector.answer(request) }
    let page = await collector.metrics
    for line in [
      #"prism_collector_packets_total{namespace="prism",outcome="stored"} 1"#,
      #"prism_collector_packets_total{namespace="prism",outcome="duplicate"} 2"#,
      #"prism_collector_reports_total{namespace="prism"} 1"#,
    ] { #expect(page.split(separator: "\n").contains { $0 == line }, "\(line)") }
    #expect(try await Promtool.faults(in: page) == "")
  }

  @Test("answers with the receipt once the reports are at rest; the same packet again is a duplicate, stored once")
  func receipt() async throws {
    defer { remove() }
    let context = Self.context(.payload)
    let request = try Self.request(context, metas: [#"{"MONITOR_TYPE":"net","n":1}"#], payloads: [[1, 2, 3]])
    for isDuplicate in [false, true, true] {
      let answer = await collector.answer(request)
      #expect(answer.status == 200)
      let receipt = try #require(answer.headers.first { $0.name == "Prism-Receipt" }?.value)
      let headers = Self.packetHeaders(context, itemCount: 1)
      #expect(try PacketReceipt(key: Self.key).isValid(receipt, for: headers, answer: answer.body))
      #expect(try JSONValue(parsing: answer.body)["duplicate"]?.bool == isDuplicate)
    }
    let reports = try await get("/reports")["reports"]?.array ?? []
    #expect(reports.count == 1)
    #expect(reports.first?["type"]?.string == "net")
    #expect(reports.first?["payloadBytes"]?.int == 3)
  }

  @Test("packets of one id from two devices are two packets")
  func devices() async throws {
    defer { remove() }
    var context = Self.context(.meta)
    for device in ["d1", "d2"] {
      context.deviceID = device
      let answer = await collector.answer(try Self.request(context, metas: ["{}"]))
      #expect(try JSONValue(parsing: answer.body)["duplicate"]?.bool == false)
    }
  }

  @Test(
    "a header that is missing or wrong is refused with its code, and the refusal names the packet",
    arguments: [
      ("prism-version", "1", 503, .version), ("prism-version", "3", 503, .version),
      ("prism-namespace", nil, 400, .header),
      ("prism-packet-id", "x", 400, .header), ("prism-item-count", "0", 400, .header),
      ("prism-item-count", "2", 400, .decryptionFailed), ("prism-sent-time", "5", 400, .decryptionFailed),
      ("prism-ledger", "epoch=b", 400, .decryptionFailed), ("prism-encoding", "none", 400, .unpackFailed),
      ("prism-depends-on", "018bcfe5-6800-7000-8000-000000000001", 400, .decryptionFailed),
      ("prism-cipher", "rot13", 400, .header),
      ("prism-key-id", "other", 401, .unknownKey), ("content-type", "text/plain", 415, .contentType),
      ("prism-device-id", "other", 400, .decryptionFailed), ("prism-depends-on", "x", 400, .header),
      ("prism-cipher", "aes-256-gcm", 400, .keyLength), ("prism-cipher", "aes-128-cbc", 400, .macMismatch),
    ] as [(String, String?, Int, PacketRefusal)])
  func headers(name: String, value: String?, status: Int, code: PacketRefusal) async throws {
    defer { remove() }
    let context = Self.context(.meta)
    let answer = await collector.answer(try Self.request(context, metas: ["{}"], changing: [name: value]))
    #expect(answer.status == status)
    let body = try JSONValue(parsing: answer.body)
    #expect(body["code"]?.string == code.rawValue)
    let named = name == "prism-packet-id" ? nil : context.packetID.description
    #expect(body["packetId"]?.string == named)
    #expect(!answer.headers.contains { $0.name == "Prism-Receipt" })
  }

  @Test("a meta that is no JSON object is 422 and named by its index; keys that stand twice below the top are taken")
  func metas() async throws {
    defer { remove() }
    let answer = await collector.answer(try Self.request(Self.context(.meta), metas: ["{}", "[1]"]))
    #expect(answer.status == 422)
    #expect(try JSONValue(parsing: answer.body)["code"]?.string == "metaSyntax")
    #expect(try JSONValue(parsing: answer.body)["message"]?.string?.contains("meta 1") == true)
    let nested = await collector.answer(try Self.request(Self.context(.meta), metas: [#"{"a":{"b":1,"b":2}}"#]))
    #expect(nested.status == 200)
  }

  @Test("a packet waits for the one that it names, and is taken as soon as that came")
  func order() async throws {
    defer { remove() }
    let (first, second, third) = (Self.context(.meta), Self.context(.meta), Self.context(.meta))
    _ = await collector.answer(try Self.request(first, metas: ["{}"]))
    let late = try Self.request(third, metas: [#"{"n":3}"#], dependsOn: second.packetID)
    async let answer = collector.answer(late)
    _ = await collector.answer(try Self.request(second, metas: [#"{"n":2}"#], dependsOn: first.packetID))
    #expect(await answer.status == 200)
    let reports = try await get("/reports")["reports"]?.array ?? []
    #expect(reports.compactMap { $0["meta"]?["n"]?.int } == [2, 3])
    #expect(reports.allSatisfy { $0["chainBroken"]?.bool == false })
  }

  @Test("a device that it never heard of is not made to wait: the break is noted")
  func unknownChain() async throws {
    defer { remove() }
    let request = try Self.request(
      Self.context(.meta), metas: ["{}"], dependsOn: Self.context(.meta).packetID)
    #expect(await collector.answer(request).status == 200)
    #expect(try await get("/reports")["reports"]?.array?.first?["chainBroken"]?.bool == true)
  }

  @Test("many packets at once are all stored, each once")
  func concurrent() async throws {
    defer { remove() }
    let requests = try (0..<50).map { try Self.request(Self.context(.meta), metas: [#"{"n":\#($0)}"#]) }
    let statuses = await withTaskGroup(of: Int.self) { group in
      for request in requests + requests { group.addTask { await self.collector.answer(request).status } }
      return await group.reduce(into: []) { $0.append($1) }
    }
    #expect(statuses == [Int](repeating: 200, count: 100))
    let page = try await get("/reports", [("limit", "1000")])
    #expect(page["reports"]?.array?.count == 50)
  }

  @Test("a page of reports is filtered, limited and goes on after the last one seen")
  func pages() async throws {
    defer { remove() }
    for number in 0..<5 {
      _ = await collector.answer(
        try Self.request(Self.context(.meta), metas: [#"{"MONITOR_TYPE":"t\#(number % 2)","n":\#(number)}"#]))
    }
    let first = try await get("/reports", [("type", "t0"), ("limit", "2")])
    #expect(first["reports"]?.array?.compactMap { $0["meta"]?["n"]?.int } == [0, 2])
    let rest = try await get("/reports", [("type", "t0"), ("after", String(first["next"]?.int ?? 0))])
    #expect(rest["reports"]?.array?.compactMap { $0["meta"]?["n"]?.int } == [4])
    #expect(try await get("/reports", [("limit", "0")])["message"] != nil)
  }
}
