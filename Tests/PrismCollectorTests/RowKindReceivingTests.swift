import Foundation
import PrismHTTP
import PrismProtocol
import PrismTestSupport
import Testing

@testable import PrismCollector

/// Holds with a third kind of row, too: Tests/Extending/thirdRowKind.patch (docs/extending.md, "Add a row kind").
@Suite struct RowKindReceivingTests {
  @Test("a collector accepts packets of each kind at its path, and no other method there", arguments: RowKind.reports)
  func takes(kind: RowKind) async throws {
    let rig = try CollectorTests()
    defer { rig.remove() }
    let payloads: [[UInt8]] = kind.hasPayload ? [[1, 2, 3]] : []
    let packet = try CollectorTests.request(
      CollectorTests.context(kind), metas: [#"{"MONITOR_TYPE":"net","n":1}"#], payloads: payloads)
    #expect(packet.path == kind.path)
    #expect(await rig.collector.answer(packet).status == 200)
    let peer = HTTPPeer(address: "127.0.0.1", isLocal: true)
    let wrong = HTTPRequest(method: .get, path: kind.path, query: [], headers: [], peer: peer)
    #expect(await rig.collector.answer(wrong).status == 405)
    let read = HTTPRequest(method: .get, path: "/reports", query: [], headers: [], peer: peer)
    let answer = try JSONValue(parsing: await rig.collector.answerReader(read, isOwner: true).body)
    #expect(answer["reports"]?.array?.map { $0["payloadBytes"]?.int } == [kind.hasPayload ? 3 : nil])
  }
  @Test(
    "a 405 names every method of its path",
    arguments: [
      ("/prism/meta", "POST"), ("/prism/records", "POST, GET"), ("/prism/config", "GET"), ("/prism/enroll", "POST"),
      ("/prism/probe", "POST"), ("/healthz", "GET"), ("/metrics", "GET"),
    ])
  func allowed(path: String, methods: String) async throws {
    let rig = try CollectorTests()
    defer { rig.remove() }
    let answer = await rig.collector.answer(PageRig.request(path, method: .delete))
    #expect(answer.status == 405 && answer.headers.first { $0.name == "Allow" }?.value == methods)
  }
}
