import PrismAdmission
import PrismBase
import PrismConfig
import PrismProtocol
import PrismTestSupport
import Testing

@testable import PrismInputs
@testable import PrismLinux

/// Which requests of other inputs are repetitions (docs/forward.md, docs/otlp.md).
@Suite("Repetitions") struct RepetitionTests {
  /// One event with a fixed time. Fluent Bit's chunk id is made of the record alone.
  private static func frame(_ tag: String, _ text: String = "GET /health") -> [UInt8] {
    var bytes: [UInt8] = [0x94]
    bytes.append(msgpack: tag)
    bytes += [0xCE, 0x67, 0x3E, 0x92, 0xE1, 0x81]
    bytes.append(msgpack: "log")
    bytes.append(msgpack: text)
    bytes.append(0x81)
    bytes.append(msgpack: "chunk")
    bytes.append(msgpack: "hash of \(text)")
    return bytes
  }

  private static func acknowledgement(_ text: String = "GET /health") -> [UInt8] {
    var bytes: [UInt8] = [0x81]
    bytes.append(msgpack: "ack")
    bytes.append(msgpack: "hash of \(text)")
    return bytes
  }

  private func withForward(_ body: (InputRig, InputClient.Place) async throws -> Void) async throws {
    for isTCP in [false, true] {
      let path = TemporaryFolder.make() + "/f.sock"
      try await withInputRig {
        $0.daemon.forward.socket = path
        $0.daemon.forward.listen = "127.0.0.1:0"
      } _: { rig in
        try await body(rig, isTCP ? .tcp(try await rig.port(.forwardTCP)) : .unix(path))
      }
    }
  }

  private static func send(_ frames: [[UInt8]], on client: InputClient) async throws {
    for frame in frames {
      try await client.send(frame)
      #expect(try await client.bytes(acknowledgement().count) == acknowledgement())
      client.acknowledge()
    }
  }

  /// Waits until the server has seen the end of every connection.
  private static func isOver(_ rig: InputRig) async -> Bool {
    await IngestProbe.eventually { await rig.server.counters.connections == 0 }
  }

  @Test("equal events under one chunk id are all stored: of two tags, one after the other, and on another connection")
  func equalEvents() async throws {
    try await withForward { rig, place in
      let first = try InputClient(place)
      try await Self.send([Self.frame("app"), Self.frame("app.web"), Self.frame("app")], on: first)
      try await Self.send([Self.frame("app")], on: try InputClient(place))  // while the first one is open
      first.finishSending()
      #expect(try await first.rest() == [])
      #expect(await Self.isOver(rig))
      try await Self.send([Self.frame("app"), Self.frame("app")], on: try InputClient(place))
      #expect(rig.sink.stored.map(\.type).sorted() == Array(repeating: "app", count: 5) + ["app.web"])
      #expect(Set(rig.sink.stored.compactMap(\.reportID)).count == 6)
      #expect(await rig.server.counters.tally.repeated == 0)
    }
  }

  @Test("a chunk whose acknowledgement is lost is stored once and counted, and the equal one behind it is stored")
  func lostAcknowledgement() async throws {
    try await withForward { rig, place in
      for round in 1...3 {
        var clients = [try InputClient(place)]
        try await clients[0].send(Self.frame("app"))
        #expect(await IngestProbe.eventually { await rig.server.counters.tally.stored == round })
        clients = []  // closed without reading
        #expect(await Self.isOver(rig))
      }
      #expect(rig.sink.stored.count == 1)
      let client = try InputClient(place)
      try await Self.send([Self.frame("app")], on: client)
      #expect(rig.sink.stored.count == 1)
      #expect(await rig.server.counters.tally.repeated == 3)
      try await Self.send([Self.frame("app")], on: client)
      #expect(rig.sink.stored.count == 2)
    }
  }

  @Test("a chunk that comes again while the first one is committed, whose sender left, is stored once")
  func leftWithinCommit() async throws {
    try await withForward { rig, place in
      rig.sink.fail(Refusal(.diskFull, "no space", retryMilliseconds: 50))
      var clients = [try InputClient(place)]
      try await clients[0].send(Self.frame("app"))
      #expect(await IngestProbe.eventually { await rig.server.counters.tally.refused[.diskFull] ?? 0 > 0 })
      clients = []  // closed, while its chunk waits for room
      let client = try InputClient(place)
      try await client.send(Self.frame("app"))
      #expect(await IngestProbe.eventually { await rig.server.counters.tally.refused[.diskFull] ?? 0 > 3 })
      rig.sink.fail(nil)
      #expect(try await client.bytes(Self.acknowledgement().count) == Self.acknowledgement())
      #expect(rig.sink.stored.count == 1)
    }
  }

  @Test("chunks that are sent one behind the other without reading, and sent again, are stored once each")
  func pipelined() async throws {
    try await withForward { rig, place in
      let frames = (0..<40).map { Self.frame("app", "line \($0 % 20) " + String(repeating: "x", count: 3000)) }
      for round in 1...2 {
        var clients = [try InputClient(place)]
        try await clients[0].send(frames.flatMap { $0 })
        #expect(await IngestProbe.eventually { await rig.server.counters.tally.stored == 40 * round })
        clients = []  // closed, with answers that were not read
        #expect(await Self.isOver(rig))
      }
      #expect(rig.sink.stored.count == 40)
      #expect(await rig.server.counters.tally.repeated == 40)
    }
  }

  /// A record without a time.
  private static func logRequest(_ text: String) -> [UInt8] {
    let body = #"{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":{"stringValue":"\#(text)"}}]}]}]}"#
    let head = "POST /v1/logs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return Array("\(head)Content-Length: \(body.utf8.count)\r\n\r\n\(body)".utf8)
  }

  /// Sends a request on a connection that stays open, and reads the answer.
  private static func log(_ text: String, at place: InputClient.Place) async throws -> InputClient {
    let client = try InputClient(place)
    try await client.send(logRequest(text))
    var answer = ""
    while !answer.hasSuffix("{}"), let byte = try await client.bytes(1).first {
      answer.unicodeScalars.append(.init(byte))
    }
    #expect(answer.hasPrefix("HTTP/1.1 200"))
    client.acknowledge()
    return client
  }

  /// Ends the connection of a request with its answer unread.
  private static func lose(_ request: [UInt8], at place: InputClient.Place, of rig: InputRig) async throws {
    let (taken, others) = (await rig.server.counters.tally.stored, await rig.server.counters.connections)
    var clients = [try InputClient(place)]
    try await clients[0].send(request)
    #expect(await IngestProbe.eventually { await rig.server.counters.tally.stored == taken + 1 })
    clients = []
    #expect(await IngestProbe.eventually { await rig.server.counters.connections == others })
  }

  @Test(
    "over an orderly stop, equal requests that were answered are all stored, and one whose answer is lost is stored once"
  )
  func orderlyStop() async throws {
    let path = TemporaryFolder.make() + "/f.sock"
    try await withInputRig {
      $0.daemon.forward.socket = path
      $0.daemon.forward.listen = "127.0.0.1:0"
    } _: { first in
      var open: [InputClient] = []
      for place in [InputClient.Place.unix(path), .tcp(try await first.port(.forwardTCP))] {
        open.append(try InputClient(place))
        try await Self.send([Self.frame("app"), Self.frame("app.web")], on: open.last!)
      }
      for place in [InputClient.Place.unix(first.path), .tcp(try await first.port(.otlp))] {
        open.append(try await Self.log("tick", at: place))
      }
      try await Self.lose(Self.frame("app", "lost"), at: .unix(path), of: first)
      try await Self.lose(Self.logRequest("lost"), at: .unix(first.path), of: first)
      let before = first.sink.stored.count
      #expect(before == 8)
      let second = try await first.restarted()
      let client = try InputClient(.unix(path))
      try await Self.send([Self.frame("app"), Self.frame("app.web")], on: client)
      let logs = try await Self.log("tick", at: .unix(second.path))
      #expect(first.sink.stored.count == before + 3)
      try await client.send(Self.frame("app", "lost"))
      #expect(try await client.bytes(Self.acknowledgement("lost").count) == Self.acknowledgement("lost"))
      _ = try await Self.log("lost", at: .unix(second.path))
      #expect(first.sink.stored.count == before + 3)
      #expect(await second.server.counters.tally.repeated == 2)
      withExtendedLifetime((open, logs)) {}
      await second.server.stop()
    }
  }

  @Test("an OTLP request whose answer is lost is stored once, and equal ones that were answered are all stored")
  func otlp() async throws {
    let body = Array(#"{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":{"stringValue":"tick"}}]}]}]}"#.utf8)
    let head = "POST /v1/logs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    let request = Array("\(head)Content-Length: \(body.count)\r\n\r\n".utf8) + body
    try await withInputRig { rig in
      for place in [InputClient.Place.tcp(try await rig.port(.otlp)), .unix(rig.path)] {
        let before = rig.sink.stored.count
        let taken = await rig.server.counters.tally.stored
        for round in 1...2 {
          var clients = [try InputClient(place)]
          try await clients[0].send(request)
          #expect(await IngestProbe.eventually { await rig.server.counters.tally.stored == taken + round })
          clients = []  // closed, with an answer that was not read
          #expect(await Self.isOver(rig))
        }
        #expect(rig.sink.stored.count == before + 1)
        for count in [before + 1, before + 2, before + 3] {
          let client = try InputClient(place)
          try await client.send(request)
          client.finishSending()
          #expect(String(decoding: try await client.rest(), as: UTF8.self).hasPrefix("HTTP/1.1 200"))
          #expect(rig.sink.stored.count == count)
          #expect(await Self.isOver(rig))
        }
      }
      #expect(await rig.server.counters.tally.repeated == 4)
    }
  }

  @Test("what was not known to be answered before a crash is known by the note of the store, once")
  func note() throws {
    var before = SentRequests("forward")
    let (lost, received) = (AnswerReceipt(), AnswerReceipt())
    before.load([], now: .zero)
    let first = before.prefix(of: [1], "f", from: 7, lost, now: .zero)
    _ = before.prefix(of: [2], "f", from: 7, received, now: .zero)
    received.settle(.received)
    let note = try #require(before.note(in: "logs", now: .seconds(1)))
    var after = SentRequests("forward")
    after.load(note.value, now: .zero)
    #expect(note.value.count == 16 + 32)
    #expect(after.prefix(of: [1], "f", from: 8, AnswerReceipt(), now: .seconds(1)) != first)
    #expect(after.prefix(of: [1], "f", from: 7, AnswerReceipt(), now: .seconds(1)) == first)
    #expect(after.prefix(of: [1], "f", from: 7, AnswerReceipt(), now: .seconds(1)) != first)
  }

  @Test("a lost answer is remembered for an hour, and the oldest of the user with most are forgotten first")
  func bounds() {
    var sent = SentRequests("forward")
    func lost() -> AnswerReceipt {
      let receipt = AnswerReceipt()
      receipt.settle(.lost)
      return receipt
    }
    let early = sent.prefix(of: [1], "f", from: 1, lost(), now: .zero)
    #expect(sent.prefix(of: [1], "f", from: 1, lost(), now: .seconds(3599)) == early)
    let late = sent.prefix(of: [2], "f", from: 1, lost(), now: .zero)
    #expect(sent.prefix(of: [2], "f", from: 1, lost(), now: .seconds(3600)) != late)
    let kept = sent.prefix(of: [3], "f", from: 2, lost(), now: .zero)
    for number in 0..<5000 {
      _ = sent.prefix(of: Array(String(number).utf8), "f", from: 1, lost(), now: .seconds(number / 100))
      #expect(sent.count <= SentRequests.requestsMax + SentRequests.requestsMax / 4 + 1)
    }
    #expect(sent.prefix(of: [3], "f", from: 2, lost(), now: .seconds(60)) == kept)
    #expect(sent.note(in: "logs", now: .seconds(60))?.value.count == BatchNote.valueBytesMax - 16)
  }
}
