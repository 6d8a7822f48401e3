import Glibc
import PrismAdmission
import PrismBase
import PrismConfig
import PrismEngine
import PrismProtocol
import PrismTestSupport
import Testing

@testable import PrismInputs
@testable import PrismLinux
@testable import PrismPacket

/// Fluent's forward protocol through the ingest server, to a real store (docs/forward.md).
@Suite("Fluent's forward protocol") struct ForwardServerTests {
  private static func entry(_ number: Int) -> [UInt8] {
    var bytes: [UInt8] = [0x92, 0xCE, 0x67, 0x3E, 0x92, 0xE1, 0x81]
    bytes.append(msgpack: "n")
    return bytes + [UInt8(number)]
  }

  private static func chunk(_ name: String?) -> [UInt8] {
    guard let name else { return [] }
    var bytes: [UInt8] = [0x81]
    bytes.append(msgpack: "chunk")
    bytes.append(msgpack: name)
    return bytes
  }

  enum Mode: CaseIterable { case message, forward, packed, compressed }

  /// Three events, 1 to 3, of the tag `app`, in one message; in the message mode, in three.
  private static func frames(_ mode: Mode, chunk name: String?) throws -> [[UInt8]] {
    var head: [UInt8] = [name == nil ? 0x92 : 0x93]
    head.append(msgpack: "app")
    let entries = (1...3).flatMap(entry)
    switch mode {
    case .message:
      return (1...3).map { number in
        var bytes: [UInt8] = [name == nil ? 0x93 : 0x94]
        bytes.append(msgpack: "app")
        return bytes + entry(number).dropFirst() + chunk(name.map { "\($0)\(number)" })
      }
    case .forward: return [head + [0x93] + entries + chunk(name)]
    case .packed: return [head + [0xC5, 0, UInt8(entries.count)] + entries + chunk(name)]
    case .compressed:
      let packed = try GzipCompressor().compress(entries)
      var option: [UInt8] = [name == nil ? 0x81 : 0x82]
      option.append(msgpack: "compressed")
      option.append(msgpack: "gzip")
      head[0] = 0x93
      return [head + [0xC4, UInt8(packed.count)] + packed + option + chunk(name).dropFirst()]
    }
  }

  private static func acknowledgement(_ name: String) -> [UInt8] {
    var bytes: [UInt8] = [0x81]
    bytes.append(msgpack: "ack")
    bytes.append(msgpack: name)
    return bytes
  }

  private func withForward(
    _ change: (inout Snapshot) -> Void = { _ in }, _ body: (InputRig, InputClient.Place) async throws -> Void
  ) async throws {
    for isTCP in [false, true] {
      let path = TemporaryFolder.make() + "/f.sock"
      try await withInputRig {
        $0.daemon.forward.socket = path
        $0.daemon.forward.listen = "127.0.0.1:0"
        change(&$0)
      } _: { rig in
        try await body(rig, isTCP ? .tcp(try await rig.port(.forwardTCP)) : .unix(path))
      }
    }
  }

  @Test(
    "each mode stores its events and acknowledges its chunk after the commit, each time that it is sent",
    arguments: Mode.allCases, [1, Int.max])
  func modes(mode: Mode, piece: Int) async throws {
    try await withForward { rig, place in
      let frames = try Self.frames(mode, chunk: "c")
      let expected = mode == .message ? (1...3).flatMap { Self.acknowledgement("c\($0)") } : Self.acknowledgement("c")
      for _ in 0..<2 {
        let client = try InputClient(place)
        try await client.send(frames.flatMap { $0 }, piece: piece)
        #expect(try await client.bytes(expected.count) == expected)
      }
      #expect(rig.sink.stored.map { $0.meta["n"]?.int } == [1, 2, 3, 1, 2, 3])
      let first = try #require(rig.sink.stored.first)
      #expect((first.namespace, first.type, first.createdTime) == ("logs", "app", 1_732_154_081_000))
    }
  }

  @Test("of a large chunk whose longest records are cut every event is stored once, however often it comes")
  func cutRecords() async throws {
    try await withForward { rig, place in
      for round in 1...3 {
        var clients = [try InputClient(place)]
        try await clients[0].send(Self.largeFrame(chunk: "c", longEach: 7))
        #expect(await IngestProbe.eventually { await rig.server.counters.tally.stored == 120 * round })
        clients = []  // closed, with an answer that was not read
        #expect(await IngestProbe.eventually { await rig.server.counters.connections == 0 })
      }
      #expect(rig.sink.stored.count == 120)
      #expect(await rig.server.counters.tally.repeated == 240)
      #expect(rig.sink.stored.count { $0.meta["TRUNCATED"] != nil } == 18)
      #expect(Set(rig.sink.stored.map(\.reportID)).count == 120)
    }
  }

  @Test("without a chunk nothing is answered, and the events are stored", arguments: Mode.allCases)
  func noChunk(mode: Mode) async throws {
    try await withForward { rig, place in
      let client = try InputClient(place)
      for frame in try Self.frames(mode, chunk: nil) { try await client.send(frame) }
      client.finishSending()
      #expect(try await client.rest() == [])
      #expect(rig.sink.stored.map { $0.meta["n"]?.int } == [1, 2, 3])
      #expect(await IngestProbe.eventually { await rig.server.counters.connections == 0 })
      #expect(await rig.server.counters.memoryBytes == 0)
    }
  }

  @Test("no acknowledgement comes before the commit") func afterCommit() async throws {
    try await withForward { rig, place in
      rig.sink.fail(Refusal(.diskFull, "no space", retryMilliseconds: 20))
      let client = try InputClient(place)
      try await client.send(try Self.frames(.packed, chunk: "c")[0])
      let answer = Task { try await client.bytes(Self.acknowledgement("c").count) }
      #expect(await IngestProbe.eventually { await rig.server.counters.tally.refused[.diskFull] ?? 0 >= 6 })
      #expect(rig.sink.stored.isEmpty)
      rig.sink.fail(nil)
      #expect(try await answer.value == Self.acknowledgement("c"))
      #expect(rig.sink.stored.count == 3)
    }
  }

  @Test("what is refused for good does not hold up its sender: it is counted, and the chunk is acknowledged")
  func refusedForGood() async throws {
    try await withForward {
      $0.namespaces[NamespaceName("logs")!]?.isGather = false
    } _: { rig, place in
      let client = try InputClient(place)
      try await client.send(try Self.frames(.packed, chunk: "c")[0])
      #expect(try await client.bytes(Self.acknowledgement("c").count) == Self.acknowledgement("c"))
      #expect(await rig.server.counters.tally.refused == [.gatherOff: 3])
      #expect(await rig.server.counters.inputRequests == [.init(input: "forward", status: 422): 1])
    }
  }

  @Test(
    "events wait, and are not acknowledged, while their namespace's file or their type is missing",
    arguments: [RefusalCode.unknownNamespace, .unknownType])
  func missing(code: RefusalCode) async throws {
    try await withForward {
      if code == .unknownNamespace { $0.namespaces[NamespaceName("logs")!] = nil }
      if code == .unknownType { $0.namespaces[NamespaceName("logs")!]?.monitorList.removeFirst() }
    } _: { rig, place in
      let client = try InputClient(place)
      try await client.send(try Self.frames(.packed, chunk: "c")[0])
      #expect(await IngestProbe.eventually { await rig.server.counters.tally.refused[code] ?? 0 >= 6 })
      #expect(rig.sink.stored.isEmpty)
      func said(_ text: String) -> Int { rig.sink.lines.count { $0.contains(text) && $0.contains("type=app") } }
      #expect(said("wait at their sender until their namespace and type are configured") == 1, "\(rig.sink.lines)")
      var snapshot = InputRig.snapshot()
      snapshot.daemon = rig.engine.hub.current.daemon
      await rig.engine.publish(snapshot)
      #expect(try await client.bytes(Self.acknowledgement("c").count) == Self.acknowledgement("c"))
      #expect(rig.sink.stored.count == 3)
      #expect(said("are taken again") == 1)
    }
  }

  @Test("a tag that is no type, or one too many for a pattern, becomes the type `other` with its tag")
  func otherTypes() async throws {
    try await withForward {
      $0.namespaces[NamespaceName("logs")!]?.monitorList = [MonitoredType(.any)]
    } _: { rig, place in
      let client = try InputClient(place)
      for first in 0..<11 {
        let tags = (0..<100).map { "tag\(first * 100 + $0)" } + ["ä b/\(first)"]
        for (index, tag) in tags.enumerated() {
          var frame: [UInt8] = [index == tags.count - 1 ? 0x94 : 0x93]
          frame.append(msgpack: tag)
          try await client.send(frame + Self.entry(1).dropFirst() + (index == tags.count - 1 ? Self.chunk("c") : []))
        }
        #expect(try await client.bytes(Self.acknowledgement("c").count) == Self.acknowledgement("c"))
      }
      #expect(rig.sink.stored.count == 1111)
      let others = rig.sink.stored.filter { $0.type == "other" }.compactMap { $0.meta["FLUENT_TAG"]?.string }
      #expect(others.count == 111 && Set(others).count == 111)
      #expect(others.contains("ä b/3") && others.contains("tag1099") && !others.contains("tag0"))
      #expect(await rig.server.counters.tally.otherTypes == 111)
      #expect(await rig.server.counters.tally.refused == [:])
    }
  }

  private static func part(_ ordinal: Int, _ text: String, isLast: Bool, chunk name: String? = nil) -> [UInt8] {
    var frame: [UInt8] = [name == nil ? 0x93 : 0x94]
    frame.append(msgpack: "app")
    frame += [0xCE, 0x67, 0x3E, 0x92, 0xE1, 0x86]
    let fields = [
      ("container_name", "/web"), ("partial_message", "true"), ("partial_id", "p"), ("partial_ordinal", "\(ordinal)"),
      ("partial_last", isLast ? "true" : "false"),
    ]
    for (key, value) in fields {
      frame.append(msgpack: key)
      frame.append(msgpack: value)
    }
    frame.append(msgpack: "log")
    frame += [0xDA, UInt8(text.utf8.count >> 8), UInt8(text.utf8.count & 255)] + text.utf8
    return frame + chunk(name)
  }

  @Test("Docker's parts of a line are one report, whose payload is a line that is longer than a meta")
  func parts() async throws {
    let line = String((0..<40_000).map { Character(Unicode.Scalar(UInt8(97 + $0 % 26))) })
    let pieces = stride(from: 0, to: 40_000, by: 16_384).map { String(line.dropFirst($0).prefix(16_384)) }
    try await withForward {
      var app = MonitoredType(ReportType("app")!)
      app.isUploadPayload = true
      $0.namespaces[NamespaceName("logs")!]?.monitorList = [app]
    } _: { rig, place in
      let client = try InputClient(place)
      for (index, piece) in pieces.enumerated() {
        try await client.send(Self.part(index + 1, piece, isLast: index == pieces.count - 1))
      }
      #expect(await IngestProbe.eventually { rig.sink.stored.count == 1 })
      let whole = try #require(rig.sink.stored.first)
      #expect(whole.payload == Array(line.utf8) && whole.meta["PAYLOAD_FIELD"] == "log")
      #expect(whole.meta["container_name"] == "/web" && whole.meta["partial_message"] == nil)
      #expect(whole.meta["TRUNCATED"]?.int ?? 0 > 25_000)
      #expect(await rig.server.counters.tally.refused == [:], "what is cut is not refused")
      // A part that is acknowledged is stored, also without its rest.
      try await client.send(Self.part(1, "begin", isLast: false, chunk: "c"))
      #expect(try await client.bytes(Self.acknowledgement("c").count) == Self.acknowledgement("c"))
      #expect(rig.sink.stored.last?.meta["log"] == "begin")
      // A rest that does not come is not waited for.
      try await client.send(Self.part(1, "lonely", isLast: false))
      #expect(await IngestProbe.eventually { rig.sink.stored.last?.meta["log"] == "lonely" })
      #expect(rig.sink.stored.last?.meta["partial_last"] == "false")
    }
  }

  @Test("a tag's type is that of the first glob that matches, and the tag stays in the meta") func types() async throws
  {
    try await withForward {
      $0.daemon.forward.types = [.init(glob: "a?p", type: ReportType("app.web")!), .init(glob: "*", type: .appCrash)]
    } _: { rig, place in
      let client = try InputClient(place)
      try await client.send(try Self.frames(.forward, chunk: "c")[0])
      _ = try await client.bytes(Self.acknowledgement("c").count)
      #expect(rig.sink.stored.map(\.type) == ["app.web", "app.web", "app.web"])
      #expect(rig.sink.stored[0].meta["FLUENT_TAG"]?.string == "app")
    }
  }

  @Test(
    "what is not the protocol ends the connection, and what was whole before it is stored",
    arguments: [[0x7B, 0x7D], [0xC1], [0x93, 0xC1], [0x92, 0x01, 0x02], [UInt8](repeating: 0x92, count: 2000)])
  func foreign(bytes: [UInt8]) async throws {
    try await withForward { rig, place in
      let client = try InputClient(place)
      try await client.send(try Self.frames(.forward, chunk: nil)[0] + bytes)
      client.finishSending()
      _ = try? await client.rest()
      #expect(await IngestProbe.eventually { await rig.server.counters.connections == 0 })
      #expect(await IngestProbe.eventually { await rig.server.counters.memoryBytes == 0 })
      if bytes.count < 10, bytes != [0x92, 1, 2] { #expect(rig.sink.stored.count == 3) }
    }
  }

  /// A packed message of about a mebibyte. - Parameter longEach: the distance between records over the limit of a meta.
  private static func largeFrame(chunk name: String, longEach: Int = .max) -> [UInt8] {
    var entries: [UInt8] = []
    for number in 0..<120 {
      let textBytes = number % longEach == 0 && longEach < .max ? 0x3000 : 0x2200
      entries += entry(number)
      entries[entries.count - 4] = 0x82  // a second member
      entries.append(msgpack: "text")
      entries += [0xDA, UInt8(textBytes >> 8), 0] + [UInt8](repeating: UInt8(ascii: "x"), count: textBytes)
    }
    var head: [UInt8] = [0x93]
    head.append(msgpack: "app")
    head.append(0xC6)
    head += (0..<4).map { UInt8(truncatingIfNeeded: entries.count >> (24 - 8 * $0)) }
    return head + entries + chunk(name)
  }

  @Test("large messages of one user whose beginnings fill its memory are all taken, one after the other")
  func manyLarge() async throws {
    try await withForward { rig, place in
      let clients = try (0..<12).map { _ in try InputClient(place) }
      let frames = clients.indices.map { Self.largeFrame(chunk: "c\($0)") }
      for (client, frame) in zip(clients, frames) { try await client.send(Array(frame.prefix(150_000))) }
      try await withThrowingTaskGroup(of: Void.self) { group in
        for (index, client) in clients.enumerated() {
          let expected = Self.acknowledgement("c\(index)")
          group.addTask {
            try await client.send(Array(frames[index].dropFirst(150_000)))
            #expect(try await client.bytes(expected.count) == expected)
          }
        }
        try await group.waitForAll()
      }
      #expect(rig.sink.stored.count == 12 * 120)
      #expect(await IngestProbe.eventually { await rig.server.counters.memoryBytes < 1 << 20 })
    }
  }

  @Test("a cut record of a type with a filter has no payload: it would show what the filter hides") func filtered()
    async throws
  {
    try await withForward {
      var app = MonitoredType(ReportType("app")!)
      app.isUploadPayload = true
      app.filters.redact = [.init(FieldPath("card")!, .mask)]
      $0.namespaces[NamespaceName("logs")!]?.monitorList = [app]
    } _: { rig, place in
      var frame: [UInt8] = [0x94]
      frame.append(msgpack: "app")
      frame += [0xCE, 0x67, 0x3E, 0x92, 0xE1, 0x82]
      frame.append(msgpack: "card")
      frame.append(msgpack: "4000")
      frame.append(msgpack: "log")
      frame += [0xDA, 0x50, 0x00] + [UInt8](repeating: 0x78, count: 0x5000)
      let client = try InputClient(place)
      try await client.send(frame + Self.chunk("c"))
      #expect(try await client.bytes(Self.acknowledgement("c").count) == Self.acknowledgement("c"))
      let stored = try #require(rig.sink.stored.first)
      #expect(stored.meta["card"] == "***" && stored.payload == nil && stored.meta["TRUNCATED"]?.int ?? 0 > 8000)
    }
  }

  @Test("Fluentd's chunk of 8 MiB is taken, with memory for a part of its events at a time") func chunkOfFluentd()
    async throws
  {
    try await withForward { rig, place in
      var entries: [UInt8] = []
      entries.reserveCapacity(8 << 20)
      var one: [UInt8] = [0x92, 0xCE, 0x67, 0x3E, 0x92, 0xE1, 0x81]
      one.append(msgpack: "text")
      one += [0xDA, 0x20, 0] + [UInt8](repeating: 0x78, count: 0x2000)
      while entries.count + one.count <= 8 << 20 { entries += one }
      var frame: [UInt8] = [0x93]
      frame.append(msgpack: "app")
      frame.append(0xC6)
      frame += (0..<4).map { UInt8(truncatingIfNeeded: entries.count >> (24 - 8 * $0)) }
      let client = try InputClient(place)
      try await client.send(frame + entries + Self.chunk("c"))
      #expect(try await client.bytes(Self.acknowledgement("c").count) == Self.acknowledgement("c"))
      #expect(rig.sink.stored.count == entries.count / one.count)
    }
  }

  @Test("a message over 12 MiB ends the connection before it is read, and is counted as too large") func tooLarge()
    async throws
  {
    try await withForward { rig, place in
      let client = try InputClient(place)
      var head: [UInt8] = [0x92]
      head.append(msgpack: "app")
      try await client.send(head + [0xC6, 1, 0, 0, 0] + [UInt8](repeating: 0, count: 100))
      #expect(try await client.rest() == [])
      client.finishSending()
      #expect(
        await IngestProbe.eventually {
          await rig.server.counters.inputRequests == [.init(input: "forward", status: 413): 1]
        })
      #expect(await rig.server.counters.foreignProtocols == [:])
    }
  }

  @Test("over TCP a shared key is proven by both ends, and another one is refused", arguments: [true, false])
  func sharedKey(isKnown: Bool) async throws {
    try await withForward {
      $0.daemon.forward.sharedKeyFile = HeldFile(path: "/k", content: Secret(Array("secret".utf8)))
    } _: { rig, place in
      guard case .tcp = place else { return }
      let client = try InputClient(place)
      let hello = try await client.bytes(SharedKey.hello(nonce: [UInt8](repeating: 0, count: 16)).count)
      let start = try #require(hello.firstRange(of: [0xC4, 16])).upperBound
      let nonce = Array(hello[start..<(start + 16)])
      let (salt, host) = (Array("salt".utf8), Array("host".utf8))
      let key = isKnown ? "secret" : "other"
      let digest = Hex.encode(try Hashing.sha512(salt + host + nonce + Array(key.utf8)))
      var ping: [UInt8] = [0x96]
      for text in ["PING", "host", "salt", digest, "", ""] { ping.append(msgpack: text) }
      try await client.send(ping + (try Self.frames(.forward, chunk: "c")[0]))
      if !isKnown { client.finishSending() }
      let own = Hex.encode(try Hashing.sha512(salt + Array("prismd".utf8) + nonce + Array(key.utf8)))
      if isKnown {
        let pong = try await client.bytes(1 + 5 + 1 + 1 + 7 + 2 + own.utf8.count)
        #expect(pong.firstRange(of: Array(own.utf8)) != nil)
        #expect(try await client.bytes(Self.acknowledgement("c").count) == Self.acknowledgement("c"))
      } else {
        #expect(try await client.rest().firstRange(of: Array("shared key".utf8)) != nil)
        #expect(rig.sink.stored.isEmpty)
      }
    }
  }
}
