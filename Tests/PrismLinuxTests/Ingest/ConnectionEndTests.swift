import Glibc
import PrismAdmission
import PrismLinux
import PrismProtocol
import PrismTestSupport
import Testing

@Suite("A connection that ends at any byte")
struct ConnectionEndTests {
  enum End: String, CaseIterable, Sendable { case close, halfClose, silence }

  private static let lines = [
    #"{"type":"net","meta":{"ms":12}}"# + "\n", #"{"type":"net","meta":{"a":1},"payload":"!!"}"# + "\n",
    #"{"type":"net","meta":{"p":1},"payloadBytes":5}"# + "\nhello", "bad\n", "\r\n",
    #"{"type":"none","meta":{"p":1},"payloadBytes":3}"# + "\nabc", #"{"hello":{"answer":"cumulative"}}"# + "\n",
  ]
  private static let bodies = [
    #"{"type":"net","meta":{"ms":12}}"#, #"{"type":"net","meta":{"a":1},"payload":"!!"}"#, "bad\n\nbad", "",
    "{\n\"type\":\n\"net\",\"meta\":{\"a\":1}}", #"{"type":"net","meta":{"p":1},"payloadBytes":9}"# + "\nhello",
  ]

  private static func script(_ random: inout SeededRandom) -> [UInt8] {
    guard random.oneIn(2) else { return Array((0..<3).map { _ in random.pick(lines) }.joined().utf8) }
    let requests = (0..<2).map { _ in
      let body = random.pick(bodies)
      let head = "POST /v1/reports HTTP/1.1\r\nHost: p\r\n"
      switch Int.random(in: 0..<4, using: &random) {
      case 0: return "\r\nGET /v1/common HTTP/1.1\r\nHost: p\r\n\r\n"
      case 1 where !body.isEmpty:
        return head + "Transfer-Encoding: chunked\r\n\r\n\(String(body.utf8.count, radix: 16))\r\n\(body)\r\n0\r\n\r\n"
      default: return head + "Content-Length: \(body.utf8.count)\r\n\r\n\(body)"
      }
    }
    return Array(requests.joined().utf8)
  }

  /// - Parameter accepted: one that is not accepted yet counts nowhere.
  private static func isOver(_ rig: IngestRig, accepted: Int) async -> Bool {
    await IngestRig.eventually {
      let counters = await rig.server.counters
      return counters.acceptedConnections == accepted && counters.connections == 0 && counters.memoryBytes == 0
    }
  }

  @Test("nothing is left: no connection, no memory, and stopping ends", arguments: End.allCases)
  func everyByte(end: End) async throws {
    var random = SeededRandom(seed: SeededRandom.announcedSeed("connection ends, \(end.rawValue)"))
    try await withIngestRig { rig in
      let scripts = (0..<3).map { _ in Self.script(&random) }
      for (round, script) in scripts.enumerated() {
        var silent: [IngestClient] = []
        for cut in 0...script.count {
          let client = try IngestClient(rig.path)
          if cut > 0 { try await client.send(Array(script[..<cut])) }
          if end == .halfClose { client.finishSending() }
          if end != .close { silent.append(client) }
        }
        if end == .silence {
          #expect(await IngestRig.eventually { await rig.server.counters.connections == silent.count })
          silent = []
        }
        let text = String(decoding: script, as: UTF8.self)
        let isOver = await Self.isOver(rig, accepted: scripts[...round].reduce(0) { $0 + $1.count + 1 })
        #expect(isOver, "\(text)")
      }
    }
  }

  @Test("half a request of any form is closed after 30 s of silence; a quiet connection is not")
  func silence() async throws {
    var random = SeededRandom(seed: SeededRandom.announcedSeed("silence"))
    try await withIngestRig { rig in
      let quiet = try IngestClient(rig.path)
      try await quiet.send(Self.lines[0])
      _ = try await quiet.lines(1)
      var clients: [IngestClient] = []
      for _ in 0..<40 {
        let script = Self.script(&random)
        let client = try IngestClient(rig.path)
        try await client.send(Array(script[..<Int.random(in: 1...script.count, using: &random)]))
        clients.append(client)
      }
      let half = try IngestClient(rig.path)
      try await half.send("{")
      #expect(await IngestRig.eventually { rig.time.sleeperCount == 1 })
      // The bytes may arrive after a step of the clock: then the deadline is later.
      #expect(
        await IngestRig.eventually {
          rig.time.advance(by: .seconds(31))
          return half.isEnded
        })
      #expect(await rig.server.counters.closedConnections[.stalled] ?? 0 > 0)
      try await quiet.send(Self.lines[0])
      #expect(try await quiet.lines(1)[0]["status"] == "stored")
    }
  }

  @Test("a daemon that stops in the midst of half-sent requests and unread answers ends within its time")
  func stops() async throws {
    var random = SeededRandom(seed: SeededRandom.announcedSeed("stop"))
    try await withIngestRig { rig in
      var clients: [IngestClient] = []
      for _ in 0..<60 {
        let script = Self.script(&random)
        let client = try IngestClient(rig.path, isBlocking: false)
        _ = client.sendUntilFull(Array(script[..<Int.random(in: 1...script.count, using: &random)]), max: 1)
        clients.append(client)
      }
      let unread = try IngestClient(rig.path, isBlocking: false)
      _ = unread.sendUntilFull(Array(String(repeating: "bad\n", count: 10_000).utf8), max: 1 << 20)
      #expect(await IngestRig.eventually { await rig.server.counters.answerPauses > 0 })
      let stopped = Task { await rig.server.stop() }
      let isEmpty = await IngestRig.eventually {
        rig.time.advance(by: IngestServer.stopMax)
        return await rig.server.counters.connections == 0
      }
      #expect(isEmpty)
      await stopped.value
      #expect(await rig.server.counters.memoryBytes == 0)
    }
  }
}
