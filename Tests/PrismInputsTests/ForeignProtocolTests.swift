import Glibc
import PrismAdmission
import PrismConfig
import PrismControl
import PrismEngine
import PrismProtocol
import PrismTestSupport
import Testing

@testable import PrismInputs
@testable import PrismLinux

/// A client that speaks another protocol than is taken learns it in one line (docs/ingest-protocol.md, "Refusals").
@Suite("Foreign protocols") struct ForeignProtocolTests {
  static let openings: [(ForeignProtocol?, String)] = [
    (.tls, "\u{16}\u{3}\u{1}\u{2}"), (.http2, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    (.syslog, "<34>1 2026-11-22 h app - - -\n"),
    (.syslog, "<13>Oct 11 22:14:15 h app: text"), (.syslog, "29 <34>1 2026-11-22 h app - - -"),
    (.statsd, "page.views:1|c\n"), (.statsd, "load:0.5|g|#a:b\n"), (nil, #"{"type":"net"}"#),
    (nil, "POST /v1/logs HTTP/1.1\r\n"),
    (nil, "hello\n"), (nil, "12\n"), (nil, "<html>\n"), (nil, "<"), (nil, "<34"), (nil, "a:b|c\n"), (nil, ""),
    (nil, "{\"a:1|c\n"),
  ]

  @Test("a protocol is recognized by its first bytes", arguments: openings)
  func recognized(expected: ForeignProtocol?, opening: String) {
    #expect(ForeignProtocol(Array(opening.utf8)[...]) == expected)
  }

  @Test("msgpack begins with an array or a map", arguments: [0x80, 0x82, 0x92, 0x9F, 0xDC, 0xDD, 0xDE, 0xDF])
  func msgpack(byte: UInt8) { #expect(ForeignProtocol([byte]) == .msgpack) }

  @Test(
    "on the ingest socket it is answered in one line, counted, and shown with its peer to those who follow",
    arguments: openings.filter { $0.0 != nil }, [1, Int.max])
  func answered(opening: (ForeignProtocol?, String), piece: Int) async throws {
    try await withInputRig { rig in
      let subscription = rig.engine.feed.follow(.init())
      let foreign = try #require(opening.0)
      let client = try InputClient(.unix(rig.path))
      try? await client.send(Array(opening.1.utf8), piece: piece)  // it may be cut off after its first bytes
      client.finishSending()
      let answer = try JSONValue(parsing: try await client.rest())
      #expect(answer["code"]?.string == "bad_request")
      #expect(answer["message"]?.string?.contains("this is \(foreign.title)") == true)
      guard case .report(let event) = await subscription.next() else { throw InputClient.Failure(code: 0) }
      #expect(event.foreign == foreign.title)
      #expect(event.peer?.hasPrefix("user \(getuid()), process \(getpid())") == true)
      #expect(await rig.server.counters.foreignProtocols == [foreign: 1])
      #expect(await IngestProbe.eventually { await rig.server.counters.connections == 0 })
      #expect(await rig.server.counters.memoryBytes == 0)
    }
  }

  @Test(
    "over TCP no lines are taken, whole or not: only the input's own requests",
    arguments: ["{\"type\":\"order\",\"namespace\":\"shop\",\"meta\":{\"n\":1}}\n", "hello\n", "hello", "\n{}\n"])
  func linesOverTCP(text: String) async throws {
    try await withInputRig { rig in
      let client = try InputClient(.tcp(try await rig.port(.otlp)))
      try await client.send(Array(text.utf8))
      client.finishSending()
      _ = try await client.rest()
      #expect(await IngestProbe.eventually { await rig.server.counters.connections == 0 })
      #expect(rig.sink.stored.isEmpty)
      #expect(await rig.server.counters.foreignProtocols == [.other: 1])
      #expect(await rig.server.counters.tally.received == 0)
    }
  }
}
