import Foundation
import PrismBase
import PrismHTTP
import PrismPacket
import PrismProtocol
import PrismTestSupport
import Testing

@testable import PrismCollector

/// `GET /prism/records` as a device asks it.
@Suite("Questions of devices for records") struct RecordNewsTests {
  private static let shop = NamespaceName("shop")!
  private static let product = RecordTableName("product")!
  private static let ciphers: [Cipher] = [.aes128GCM, .aes128CBC]

  private static func question(
    after: Int64?, device: String = "d", cipher: Cipher = .aes128GCM, keyID: String = "main"
  ) -> DownQuestion {
    var random = SystemRandomNumberGenerator()
    return DownQuestion(
      deviceID: device, namespace: shop, table: product, after: after,
      packetID: PacketID(unixMilliseconds: 1_700_000_000_000, using: &random), cipher: cipher, keyID: keyID)
  }

  private static func request(
    _ question: DownQuestion, changing: [String: String] = [:], query: [String: String] = [:]
  ) -> HTTPRequest {
    var fields = Dictionary(question.fields.map { ($0.name.lowercased(), $0.value) }, uniquingKeysWith: { $1 })
    fields["authorization"] = "Bearer sender-token-of-tests"
    fields["prism-mac"] = try? question.code(CollectorTests.key)
    for (name, value) in changing { fields[name] = value.isEmpty ? nil : value }
    var parameters = ["namespace": question.namespace.text, "table": question.table.text]
    if let after = question.after { parameters["after"] = String(after) }
    parameters.merge(query) { $1 }
    return HTTPRequest(
      method: .get, path: DownQuestion.path, query: parameters.map { ($0.key, $0.value) },
      headers: fields.map { ($0.key, $0.value) }, peer: HTTPPeer(address: "127.0.0.1", isLocal: true))
  }

  private static func body(_ response: HTTPResponse) throws -> [UInt8] {
    let stream = try #require(response.stream)
    var body: [UInt8] = []
    while body.count < stream.byteCount {
      let piece = [UInt8](unsafeUninitializedCapacity: 1000) { bytes, count in
        count = stream.read(UnsafeMutableRawBufferPointer(bytes)) ?? 0
      }
      try #require(!piece.isEmpty)
      body += piece
    }
    #expect(body.count == stream.byteCount)
    return body
  }

  private static func lines(_ response: HTTPResponse, _ question: DownQuestion) throws -> [String] {
    try #require(response.status == 200, "\(String(decoding: response.body, as: UTF8.self))")
    let headers = try DownHeaders(answering: question) { name in
      response.headers.filter { $0.name.lowercased() == name }.map(\.value)
    }
    let mac = response.headers.first { $0.name == "Prism-Mac" }?.value
    let reader = DownReader(key: CollectorTests.key, unpackedBytesMax: 1 << 24)
    let lines = try reader.open(headers, body: try body(response), mac: mac)
    var read: [String] = []
    while let line = try lines.next() {
      read.append(String(decoding: line, as: UTF8.self).replacing(/,"store":"[0-9a-f]{16}\.0"/, with: ",store"))
    }
    return read
  }

  private static func change(_ rig: PageRig, _ changes: [RecordChange], device: String? = nil) async throws {
    let place = RecordPlace(namespace: shop, table: product, device: device)
    _ = try await rig.collector.store.change(changes, of: place, if: .always)
  }

  @Test("an answer is bound to its question, and has what is new", arguments: ciphers)
  func answers(cipher: Cipher) async throws {
    let rig = try PageRig()
    let empty = Self.question(after: nil, cipher: cipher)
    let nothing = await rig.collector.answer(Self.request(empty))
    #expect(
      try Self.lines(nothing, empty) == [#"{"full":true,"seq":0,"count":0,store,"unheard":true}"#],
      "an unknown table is an empty one")
    try await Self.change(rig, [RecordRig.put("a", 1), RecordRig.put("b", 2)])
    let all = Self.question(after: nil, cipher: cipher)
    let response = await rig.collector.answer(Self.request(all))
    let lines = try Self.lines(response, all)
    #expect(
      lines.count == 3 && lines[0] == #"{"full":true,"seq":2,"count":2,store}"#
        && lines[1].hasPrefix(#"{"id":"a","fields":{"n":1},"#))
    #expect(response.headers.contains { $0 == ("Prism-Records-Version", "2") })
    let one = Self.question(after: 1, device: "e", cipher: cipher)
    let operations = await rig.collector.answer(Self.request(one))
    #expect(
      try Self.lines(operations, one)[1].hasPrefix(#"{"seq":2,"op":"2","table":"product","id":"b","type":"insert""#))
    let none = Self.question(after: 2, cipher: cipher)
    #expect(
      try Self.lines(await rig.collector.answer(Self.request(none)), none) == [
        #"{"full":false,"seq":2,"count":0,store}"#
      ])
    // Another device with the same answer.
    let other = Self.question(after: nil, device: "e", cipher: cipher)
    #expect(throws: (any Error).self) { try Self.lines(response, other) }
    await rig.collector.close()
  }

  @Test("a tampered question is refused")
  func refuses() async throws {
    let rig = try PageRig()
    let question = Self.question(after: 1)
    let cases: [(changing: [String: String], query: [String: String], status: Int)] = [
      (["authorization": "Bearer viewer-token-of-tests"], [:], 401), (["prism-version": "1"], [:], 400),
      (["prism-device-id": ""], [:], 400), (["prism-device-id": "d e"], [:], 400), (["prism-packet-id": "1"], [:], 400),
      (["prism-cipher": "rot13"], [:], 400), (["prism-cipher": "aes-256-gcm"], [:], 400),
      (["prism-key-id": "other"], [:], 401), ([:], ["after": "-1"], 400), ([:], ["after": "01"], 400),
      ([:], ["table": "a/b"], 400), ([:], ["namespace": ""], 400),
    ]
    for one in cases {
      let response = await rig.collector.answer(Self.request(question, changing: one.changing, query: one.query))
      #expect(response.status == one.status, "\(one.changing) \(one.query)")
      #expect(response.stream == nil)
    }
    try await rig.collector.devices.store.setRevoked("d", at: 1)
    rig.rig.time.advance(by: .seconds(6))
    #expect(await rig.collector.answer(Self.request(question)).status == 403)
    let counts = rig.collector.counts.metrics
    #expect(counts.contains(#"prism_collector_record_questions_total{outcome="refused_403"} 1"#))
    await rig.collector.close()
  }

  @Test("a question without the proof of its device is refused before a table is read")
  func unproven() async throws {
    let rig = try PageRig()
    try await Self.change(rig, [RecordChange(id: RecordID("a")!, action: .put(.object([])))], device: "d")
    let question = Self.question(after: nil)
    var other = question
    other.table = RecordTableName("part")!
    for mac in ["", try other.code(CollectorTests.key), try question.code(Secret([UInt8](repeating: 7, count: 16)))] {
      let answer = await rig.collector.answer(Self.request(question, changing: ["prism-mac": mac]))
      #expect(answer.status == 401 && String(decoding: answer.body, as: UTF8.self).contains("macMismatch"))
    }
    #expect(await rig.collector.access.page.snapshots.built == 0)
    #expect(await rig.collector.answer(Self.request(question)).status == 200)
    #expect(await rig.collector.access.page.snapshots.built == 1)
    await rig.collector.close()
  }

  @Test("of a device's whole tables two answers at most are not read yet")
  func unreadTables() async throws {
    let rig = try PageRig()
    try await Self.change(rig, [RecordChange(id: RecordID("a")!, action: .put(.object([])))], device: "d")
    let question = Self.question(after: nil)
    var held: [HTTPResponse] = []
    for _ in 0..<2 { held.append(await rig.collector.answer(Self.request(question))) }
    #expect(held.map(\.status) == [200, 200])
    #expect(await rig.collector.answer(Self.request(question)).status == 503)
    held.removeLast()
    #expect(await rig.collector.answer(Self.request(question)).status == 200)
    await rig.collector.close()
  }

  @Test("the fleet's records are packed once for all devices until they change, and a device's own each time")
  func sharesSnapshots() async throws {
    let rig = try PageRig()
    try await Self.change(rig, [RecordRig.put("a", 1)])
    for device in ["d", "e", "f"] {
      let question = Self.question(after: nil, device: device)
      _ = try Self.lines(await rig.collector.answer(Self.request(question)), question)
    }
    #expect(await rig.collector.access.page.snapshots.built == 1)
    try await Self.change(rig, [RecordRig.put("a", 2)])
    let question = Self.question(after: nil)
    #expect(try Self.lines(await rig.collector.answer(Self.request(question)), question)[1].contains(#"{"n":2}"#))
    #expect(await rig.collector.access.page.snapshots.built == 2)
    let left = try FileManager.default.contentsOfDirectory(atPath: rig.rig.path).filter { $0.hasPrefix("records-") }
    #expect(left.isEmpty, "a kill leaves no file")
    await rig.collector.close()
  }

  @Test("a device that asks for all gets the changes that it sent since the last answer")
  func ownChanges() async throws {
    let rig = try PageRig()
    try await Self.change(rig, [RecordRig.put("a", 1)], device: "d")
    for n in 1...2 {
      var operation = RecordRig.operation(.insert, "own\(n)", n)
      operation.table = Self.product
      _ = try await rig.collector.store.take(try RecordRig.packet([operation]), isLate: true)
      let question = Self.question(after: nil)
      #expect(try Self.lines(await rig.collector.answer(Self.request(question)), question).count == n + 2)
    }
    await rig.collector.close()
  }
}
