import PrismPacket
import PrismProtocol
import Testing

@testable import PrismConfig
@testable import PrismEngine

@Suite("Payloads are sealed before they are stored")
struct PayloadSealingTests {
  private static let sealing = PayloadSealing { "device" }

  private static func batch(_ payloads: [[UInt8]?], key: [UInt8]?) -> ReportBatch {
    var batch = ReportBatch(
      namespace: NamespaceName("shop")!, userID: 1, context: CommonContext(members: []),
      quota: StoreQuota(bytesMax: 1 << 30, evictsOldest: false), sealKey: key)
    batch.types = [.init(type: ReportType("crash")!, priority: .crash, isRealtime: true)]
    for (number, payload) in payloads.enumerated() {
      var row = ReportBatch.Row(
        type: 0, createdTime: 0, body: append(Array(#""n":\#(number)"#.utf8), to: &batch), metaBytes: 100)
      row.clientReportID = append(Array("id-\(number)".utf8), to: &batch)
      row.payload = payload.map { append($0, to: &batch) }
      batch.rows.append(row)
    }
    return batch
  }

  private static func append(_ bytes: [UInt8], to batch: inout ReportBatch) -> Range<Int> {
    batch.arena += bytes
    return batch.arena.count - bytes.count..<batch.arena.count
  }

  private static func sealed(_ batches: [ReportBatch]) async throws -> [ReportBatch] {
    try await withCheckedContinuation { continuation in sealing.prepare(batches) { continuation.resume(returning: $0) }
    }
    .get()
  }

  @Test("each payload opens with the private key for its own report, and nothing else of the batch changes")
  func opens() async throws {
    let key = try SealingPrivateKey()
    let payloads: [[UInt8]?] = [Array("stack".utf8), nil, [], [UInt8](repeating: 7, count: 300_000)]
    let came = Self.batch(payloads, key: key.publicKey.bytes)
    let batch = try #require(try await Self.sealed([came]).first)
    for (number, payload) in payloads.enumerated() {
      let (row, before) = (batch.rows[number], came.rows[number])
      #expect(batch.arena[row.body] == came.arena[before.body])
      #expect(String(decoding: batch.arena[try #require(row.clientReportID)], as: UTF8.self) == "id-\(number)")
      guard let payload else {
        #expect(row.payload == nil)
        continue
      }
      let sealed = Array(batch.arena[try #require(row.payload)])
      let report = SealedReport(deviceID: "device", namespace: batch.namespace, reportID: "id-\(number)")
      #expect(try SealedPayload.open(sealed, with: key, of: report, bytesMax: 1 << 20) == payload)
      let other = SealedReport(deviceID: "device", namespace: batch.namespace, reportID: "id-9")
      #expect(throws: PacketError.decryptionFailed) { try SealedPayload.contents(of: sealed, with: key, of: other) }
    }
  }

  @Test("without a key, or without a payload, the batch stays as it is")
  func unsealed() async throws {
    let key = try SealingPrivateKey().publicKey.bytes
    for came in [Self.batch([Array("stack".utf8)], key: nil), Self.batch([nil], key: key)] {
      #expect(try await Self.sealed([came]).first?.arena == came.arena)
    }
  }

  @Test("a key of small order stores nothing in clear", arguments: X25519.smallOrder)
  func failure(key: [UInt8]) async throws {
    let came = Self.batch([Array("stack".utf8)], key: key)
    await #expect(throws: PacketError.self) { try await Self.sealed([came]) }
  }
}
