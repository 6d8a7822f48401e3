import PrismBase
import PrismProtocol
import Testing

@testable import PrismPacket

/// Packets in files (docs/carrying.md).
@Suite struct CarriedPacketTests {
  static let packet = CarriedPacket(
    headers: PacketHeaders(
      deviceID: "d-1", namespace: NamespaceName("shop")!, packetID: PacketID("01a2081a-267f-7506-8c40-86188adb3e49")!,
      kind: .payload, dependsOn: PacketID("01a2081a-267f-7528-84cb-abed61650211")!, itemCount: 3, ledger: "epoch=1",
      pendingCount: 2, sentTime: 1_795_432_261_254,
      format: BlockFormat(cipher: .aes128CBC, keyID: "main", encoding: .zstd)),
    mac: "00ff", body: [0, 13, 10, 13, 10, 255])

  @Test("a packet is the same after its file, with any bytes in its body")
  func roundTrip() throws {
    #expect(try CarriedPacket(fileBytes: Self.packet.fileBytes) == Self.packet)
    #expect(Self.packet.fileName == "shop-payload-01a2081a-267f-7506-8c40-86188adb3e49.packet")
  }

  @Test("every file that is cut or has another head is refused, and says how")
  func cut() {
    let bytes = Self.packet.fileBytes
    for count in 0..<bytes.count {
      #expect(throws: CarriedPacketFault.self, "\(count) bytes of \(bytes.count)") {
        try CarriedPacket(fileBytes: Array(bytes[..<count]))
      }
    }
    #expect(throws: CarriedPacketFault.length(found: 7, named: 6)) { try CarriedPacket(fileBytes: bytes + [0]) }
  }

  @Test(
    "a file with another request line or header is refused",
    arguments: [
      ("POST /prism/payload HTTP/1.1", "GET /prism/payload HTTP/1.1"), ("Prism-Version: 2", "Prism-Version: 1"),
      ("Prism-Item-Count: 3", "Prism-Item-Count: 03"), ("Content-Length: 6", "Content-Length: six"),
      ("Prism-Key-Id: main", "Prism-Key-Id: main\r\nPrism-Key-Id: main"), ("Prism-Key-Id: ", "Prism-Key-Id"),
    ])
  func foreign(found: String, replacement: String) {
    let text = String(decoding: Self.packet.fileBytes.dropLast(6), as: UTF8.self).replacing(found, with: replacement)
    #expect(throws: CarriedPacketFault.self) { try CarriedPacket(fileBytes: Array(text.utf8) + Self.packet.body) }
  }

  @Test("an answer is the same after its line, with and without a receipt", arguments: ["id 00", nil])
  func answer(receipt: String?) throws {
    let answer = CarriedAnswer(
      headers: Self.packet.headers, status: receipt == nil ? 422 : 200, receipt: receipt,
      verdict: receipt == nil ? "id 11" : nil, body: "{\"a\":\"\n\"}\n")
    #expect(CarriedAnswer(json: try JSONValue(parsing: Array(answer.json.text.utf8))) == answer)
  }
}
