import PrismHTTP
import PrismProtocol
import PrismTestSupport
import Testing

@testable import PrismCollector
@testable import PrismPacket

@Suite("The collector and columns")
struct CollectorColumnTests {
  private static let metas = (0..<200).map { #"{"MONITOR_TYPE":"net","REPORT_ID":"r\#($0)","v":\#($0).50}"# }

  private static func request(_ form: PacketForm, device: String, head: ColumnHead? = nil) throws -> HTTPRequest {
    let context = CollectorTests.context(.meta, device: device)
    let writer = try PacketWriter(
      cipher: .aes128GCM, keyID: "main", key: CollectorTests.key, encoding: .zstd, form: form)
    var contents = try writer.pack(metas: Array(metas.joined(separator: "\n").utf8), payloads: nil)
    if let head {
      contents = PackedContents(
        format: contents.format, rawBytes: contents.rawBytes, bodyBytes: contents.bodyBytes,
        metaBlock: head.bytes + contents.metaBlock.dropFirst(ColumnHead.byteCount), payloadBlocks: nil)
    }
    let packet = try writer.seal(CollectorTests.packetHeaders(context, itemCount: metas.count), contents)
    return HTTPRequest(
      method: .post, path: "/prism/meta", query: [],
      headers: packet.headers.fields.map { ($0.name.lowercased(), $0.value) }, body: packet.body,
      peer: HTTPPeer(address: "127.0.0.1", isLocal: true))
  }

  @Test("announces columns; a device with rows and one with columns have the same reports, byte for byte")
  func stored() async throws {
    let tests = try CollectorTests()
    defer { tests.remove() }
    for form in PacketForm.allCases {
      let answer = await tests.collector.answer(try Self.request(form, device: "\(form)"))
      #expect(answer.status == 200)
      #expect(answer.headers.first { $0.name == "Prism-Accept" }?.value == "zstd, columns")
    }
    for form in PacketForm.allCases {
      let request = HTTPRequest(
        method: .get, path: "/reports", query: [("device", "\(form)"), ("limit", "500")], headers: [],
        peer: HTTPPeer(address: "127.0.0.1", isLocal: true))
      let answer = await tests.collector.answerReader(request, isOwner: true)
      let reports = try JSONValue(parsing: answer.body)["reports"]?.array ?? []
      #expect(reports.count == 200, "\(form)")
      #expect(String(decoding: answer.body, as: UTF8.self).contains("199.50"))
    }
  }

  @Test(
    "a head that says more than the rows may have, or than there is memory for, is refused before anything is unpacked",
    arguments: [
      (ColumnHead(lines: 401, textBytes: 9000, columns: 2, words: 0), 400, PacketError.countMismatch.rawValue),
      (ColumnHead(lines: 200, textBytes: 200 * (Limits.metaBytesMax + 32) + 1, columns: 2, words: 0), 413, "tooLarge"),
      (ColumnHead(lines: 200, textBytes: 9000, columns: 4097, words: 0), 413, "tooLarge"),
      (ColumnHead(lines: 200, textBytes: 9000, columns: 2, words: 0xFFFF_FFFF), 413, "tooLarge"),
    ] as [(ColumnHead, Int, String)])
  func refused(head: ColumnHead, status: Int, code: String) async throws {
    let tests = try CollectorTests()
    defer { tests.remove() }
    let answer = await tests.collector.answer(try Self.request(.columns, device: "d", head: head))
    #expect(answer.status == status)
    #expect(try JSONValue(parsing: answer.body)["code"]?.string == code)
  }
}
