import Glibc
import PrismAdmission
import PrismConfig
import PrismEngine
import PrismProtocol
import PrismTestSupport
import Testing

@testable import PrismInputs
@testable import PrismLinux
@testable import PrismPacket

/// OTLP over HTTP through the ingest server, to a real store (docs/otlp.md).
@Suite("OTLP over HTTP") struct OTLPServerTests {
  private struct Answer {
    var status: Int
    var head: String
    var body: [UInt8]
    var json: JSONValue? { try? JSONValue(parsing: body) }
  }

  private static let json = "application/json", protobuf = "application/x-protobuf"

  private static func request(
    _ body: [UInt8], to path: String = "/v1/logs", _ type: String = json, method: String = "POST",
    headers: [String] = [], host: String = "localhost"
  ) -> [UInt8] {
    let lines =
      ["\(method) \(path) HTTP/1.1", "Host: \(host)", "Content-Type: \(type)", "Connection: close"] + headers
      + ["Content-Length: \(body.count)", "", ""]
    return Array(lines.joined(separator: "\r\n").utf8) + body
  }

  private static func exchange(_ request: [UInt8], _ place: InputClient.Place, piece: Int = .max) async throws -> Answer
  {
    let client = try InputClient(place)
    try await client.send(request, piece: piece)
    let bytes = try await client.rest()
    let end = bytes.firstRange(of: Array("\r\n\r\n".utf8))?.upperBound ?? bytes.count
    let head = String(decoding: bytes[..<end], as: UTF8.self)
    return Answer(
      status: Int(head.dropFirst("HTTP/1.1 ".count).prefix(3)) ?? 0, head: head.lowercased(), body: Array(bytes[end...])
    )
  }

  private static func log(_ number: Int, _ more: String = "") -> String {
    #"{"timeUnixNano":"17321540810000000\#(number)0","severityNumber":9,"body":{"stringValue":"n \#(number)"}\#(more)}"#
  }

  private static func logs(_ records: [String], resource: String = "") -> [UInt8] {
    Array(
      #"{"resourceLogs":[{"resource":{"attributes":[\#(resource)]},"scopeLogs":[{"scope":{"name":"s"},"logRecords":["#
        .utf8)
      + Array(records.joined(separator: ",").utf8) + Array("]}]}]}".utf8)
  }

  private static func text(_ key: String, _ value: String) -> String {
    #"{"key":"\#(key)","value":{"stringValue":"\#(value)"}}"#
  }

  @Test("a request over TCP and over the ingest socket becomes reports, however it is cut", arguments: [7, Int.max])
  func bothPlaces(piece: Int) async throws {
    try await withInputRig { rig in
      let body = Self.logs(
        [Self.log(1), Self.log(2)], resource: Self.text("service.name", "till") + "," + Self.text("host.id", "h"))
      for place in [InputClient.Place.tcp(try await rig.port(.otlp)), .unix(rig.path)] {
        let answer = try await Self.exchange(Self.request(body), place, piece: piece)
        #expect(answer.status == 200)
        #expect(answer.json == .object([]))
      }
      // The second request has equal records: the first one was answered.
      #expect(rig.sink.stored.map(\.type) == Array(repeating: "otel.log", count: 4))
      let first = try #require(rig.sink.stored.first)
      #expect(first.namespace == "otel")
      #expect(first.meta["body"]?["stringValue"]?.string == "n 1")
      #expect(first.meta["APP_NAME"]?.string == "till")
      #expect(first.meta["OTEL_SCOPE"]?["name"]?.string == "s")
      #expect(first.meta["OTEL_RESOURCE"]?["attributes"]?.array?.count == 2)
      #expect(first.meta["SYS_PEER_UID"]?.string == String(getuid()))
      #expect(first.createdTime == 1_732_154_081_000)
      #expect(await rig.server.counters.inputRequests == [.init(input: "otlp_logs", status: 200): 2])
    }
  }

  @Test(
    "every vector of protobuf is stored, packed or not, each time that it is sent after an answer",
    arguments: [PacketEncoding.none, .gzip, .zstd])
  func vectors(packing: PacketEncoding) async throws {
    for vector in OTLPVectorTests.vectors {
      let records = try DecodedOTLP(protobuf: vector.protobuf, vector.signal)
      let all = records.groups.flatMap(\.records)
      let stored = all.filter { !$0.members.isEmpty }
      try await withInputRig { snapshot in
        let list = ["otel.log", "otel.span", "otel.metric"].map { MonitoredType(ReportType($0)!) }
        for name in records.groups.compactMap(\.origin.namespace).compactMap(NamespaceName.init) {
          snapshot.namespaces[name] = NamespaceConfiguration(name: name, monitorList: list)
        }
      } _: { rig in
        let port = try await rig.port(.otlp)
        let body = try packed(vector.protobuf, packing)
        let request = Self.request(body, to: vector.signal.path, Self.protobuf, headers: Self.headers(packing))
        for _ in 0..<2 {
          let answer = try await Self.exchange(request, .tcp(port))
          #expect(answer.status == 200)
          #expect(answer.body.isEmpty == all.allSatisfy { !$0.members.isEmpty }, "an empty record is refused")
        }
        #expect(Set(rig.sink.stored.compactMap(\.reportID)).count == 2 * stored.count)
      }
    }
  }

  @Test("refused records are a partial success with their count and reason")
  func partialSuccess() async throws {
    try await withInputRig { rig in
      let other = Self.logs([Self.log(3)], resource: Self.text("prism.namespace", "no name"))
      let good = Self.logs([Self.log(1)])
      let merged =
        good.dropLast(2) + Array(",".utf8) + other.dropFirst(#"{"resourceLogs":["#.utf8.count)
      let answer = try await Self.exchange(Self.request(Array(merged)), .tcp(try await rig.port(.otlp)))
      #expect(answer.status == 200)
      #expect(answer.json?["partialSuccess"]?["rejectedLogRecords"]?.string == "1")
      #expect(answer.json?["partialSuccess"]?["errorMessage"]?.string?.contains("no name") == true)
      #expect(rig.sink.stored.count == 1)
      let absent = Self.request(Self.logs([Self.log(3)], resource: Self.text("prism.namespace", "none")))
      let waiting = try await Self.exchange(absent, .tcp(try await rig.port(.otlp)))
      #expect(waiting.status == 503, "its file may still come")
    }
  }

  @Test("a resource with a long list is cut, and its records are taken") func longResource() async throws {
    try await withInputRig { rig in
      let arguments = (0..<300).map { #"{"stringValue":"-Dsome.flag.number=\#($0)"}"# }.joined(separator: ",")
      let list = #"{"key":"process.command_args","value":{"arrayValue":{"values":[\#(arguments)]}}}"#
      let body = Self.logs([Self.log(1)], resource: list + "," + Self.text("host.id", "h"))
      #expect(try await Self.exchange(Self.request(body), .tcp(try await rig.port(.otlp))).status == 200)
      let resource = try #require(rig.sink.stored.first?.meta["OTEL_RESOURCE"])
      #expect(resource["TRUNCATED"] != nil && resource["attributes"]?.array?.count == 2)
    }
  }

  @Test("records that can't be read are counted as refused, as those that admission refuses are")
  func unreadable() async throws {
    try await withInputRig { rig in
      let answer = try await Self.exchange(
        Self.request(Self.logs([Self.log(1), "7", "{}", #"{"a":tru}"#])), .tcp(try await rig.port(.otlp)))
      #expect(answer.json?["partialSuccess"]?["rejectedLogRecords"]?.string == "3")
      let tally = await rig.server.counters.tally
      #expect(tally.received == 4 && tally.stored == 1 && tally.refused == [.badRequest: 3])
    }
  }

  @Test("a full disk is 503 with Retry-After, and the same request is stored once when there is room")
  func retry() async throws {
    try await withInputRig { rig in
      let (port, request) = (try await rig.port(.otlp), Self.request(Self.logs([Self.log(1)])))
      rig.sink.fail(Refusal(.diskFull, "no space", retryMilliseconds: 2500))
      let refused = try await Self.exchange(request, .tcp(port))
      #expect(refused.status == 503)
      #expect(refused.head.contains("retry-after: 3\r\n"))
      rig.sink.fail(nil)
      #expect(try await Self.exchange(request, .tcp(port)).status == 200)
      #expect(rig.sink.stored.count == 1)
    }
  }

  @Test(
    "what is no OTLP request is refused with the status that says why",
    arguments: [
      (request([], to: "/v1/traces", method: "GET"), 405), (request([], to: "/v1/logz"), 404),
      (request([], to: "/v1/reports"), 404), (request(Array("{}".utf8), "text/plain"), 415),
      (request(Array("{}".utf8), headers: ["Content-Encoding: br"]), 415),
      (request(Array("{}".utf8), headers: ["Content-Encoding: gzip"]), 400),
      (request(Array("{}".utf8), headers: ["Content-Encoding: zstd"]), 400), (request(Array("[]".utf8)), 400),
      (request(Array("{".utf8)), 400), (request([0xFF, 0xFF], protobuf), 400),
      (request(Array("{}".utf8), host: "attacker.test"), 421), (request(Array("{}".utf8)), 200),
    ])
  func refusals(request: [UInt8], status: Int) async throws {
    try await withInputRig { rig in
      let answer = try await Self.exchange(request, .tcp(try await rig.port(.otlp)))
      #expect(answer.status == status)
      if status != 200 { #expect(answer.body.count > 10, "an answer says why") }
      #expect(await IngestProbe.eventually { await rig.server.counters.connections == 0 })
    }
  }

  @Test("a 405 names the method that OTLP takes, on both sockets")
  func allow() async throws {
    try await withInputRig { rig in
      for place in [InputClient.Place.tcp(try await rig.port(.otlp)), .unix(rig.path)] {
        let answer = try await Self.exchange(Self.request([], to: "/v1/logs", method: "GET"), place)
        #expect(answer.status == 405 && answer.head.contains("\r\nallow: post\r\n"), "\(answer.head)")
      }
    }
  }

  @Test("a body over the limit is 413, and so is one that unpacks to more")
  func tooLarge() async throws {
    try await withInputRig { rig in
      let port = try await rig.port(.otlp)
      var head = Self.request([], headers: ["X: y"])
      head = Array(
        String(decoding: head, as: UTF8.self).replacing("Content-Length: 0", with: "Content-Length: 20971521").utf8)
      #expect(try await Self.exchange(head, .tcp(port)).status == 413)
      for packing in [PacketEncoding.gzip, .zstd] {
        let bomb = try packed([UInt8](repeating: 0x20, count: OTLPLimits.bodyBytesMax + 1), packing)
        let answer = try await Self.exchange(Self.request(bomb, headers: Self.headers(packing)), .tcp(port))
        #expect(answer.status == 413)
      }
      #expect(rig.sink.stored.isEmpty)
    }
  }

  @Test("a request of 20 MiB is taken, packed or not, with 8,192 records, and so is a record that does not fit a meta")
  func large() async throws {
    try await withInputRig { snapshot in
      let types = ["otel.log", "otel.metric"].map { name in
        var type = MonitoredType(ReportType(name)!)
        type.isUploadPayload = true
        return type
      }
      snapshot.namespaces[NamespaceName("otel")!]?.monitorList = types
    } _: { rig in
      let port = try await rig.port(.otlp)
      let record =
        #"{"timeUnixNano":"1732154081000000000","body":{"stringValue":"\#(String(repeating: "x", count: 2300))"}}"#
      let body = Self.logs(Array(repeating: record, count: 8192))
      #expect(body.count > 18_000_000)
      for packing in [PacketEncoding.none, .gzip, .zstd] {
        let request = Self.request(try packed(body, packing), headers: Self.headers(packing))
        #expect(try await Self.exchange(request, .tcp(port)).status == 200)
      }
      #expect(rig.sink.stored.count == 3 * 8192)
      let wide = (0..<300).map { Self.text("key\($0)", "a value of some length") }.joined(separator: ",")
      let answer = try await Self.exchange(
        Self.request(
          Self.logs([
            Self.log(1),
            #"{"severityText":"W","attributes":[\#(wide)],"traceId":"\#(String(repeating: "0a", count: 16))"}"#,
          ])),
        .tcp(port))
      #expect(answer.status == 200 && answer.json == .object([]))
      let cut = try #require(rig.sink.stored.last)
      #expect(cut.meta["severityText"] == "W" && cut.meta["traceId"]?.string?.count == 32)
      #expect((cut.meta["attributes"]?.array?.count ?? 0) > 50 && (cut.meta["TRUNCATED"]?.int ?? 0) > 1000)
      let whole = try JSONValue(parsing: try #require(cut.payload))
      #expect(whole["attributes"]?.array?.count == 300)
      let points = (0..<200).map {
        #"{"asInt":"\#($0)","attributes":[\#(Self.text("k", String(repeating: "v", count: 200)))]}"#
      }
      let metric = #"{"name":"m","gauge":{"dataPoints":[\#(points.joined(separator: ","))]}}"#
      let metrics = #"{"resourceMetrics":[{"scopeMetrics":[{"metrics":[\#(metric)]}]}]}"#
      let taken = try await Self.exchange(Self.request(Array(metrics.utf8), to: "/v1/metrics"), .tcp(port))
      #expect(taken.status == 200 && taken.json == .object([]))
      let stored = rig.sink.stored.filter { $0.type == "otel.metric" }
      #expect(stored.flatMap { $0.meta["gauge"]?["dataPoints"]?.array ?? [] }.count == 200)
      #expect(await rig.server.counters.tally.refused == [:])
      #expect(await IngestProbe.eventually { await rig.server.counters.memoryBytes < 1 << 20 })
    }
  }

  @Test("while the namespace's file is missing the exporter is asked to try again, and then its records are stored")
  func missingNamespace() async throws {
    try await withInputRig {
      $0.namespaces[NamespaceName("otel")!] = nil
    } _: { rig in
      let (port, request) = (try await rig.port(.otlp), Self.request(Self.logs([Self.log(1)])))
      let refused = try await Self.exchange(request, .tcp(port))
      #expect(refused.status == 503 && refused.head.contains("retry-after: "))
      var snapshot = InputRig.snapshot()
      snapshot.daemon = rig.engine.hub.current.daemon
      await rig.engine.publish(snapshot)
      #expect(try await Self.exchange(request, .tcp(port)).status == 200)
      #expect(rig.sink.stored.count == 1)
    }
  }

  @Test("a record over the meta's limit is cut at its longest string and says so")
  func cut() async throws {
    try await withInputRig { rig in
      let long = String(repeating: "x", count: 30_000)
      let record = Self.log(1, #","attributes":[\#(Self.text("message", long)),\#(Self.text("kept", "short"))]"#)
      #expect(try await Self.exchange(Self.request(Self.logs([record])), .tcp(try await rig.port(.otlp))).status == 200)
      let meta = try #require(rig.sink.stored.first?.meta)
      #expect((meta["TRUNCATED"]?.int ?? 0) > 15_000)
      #expect(meta["attributes"]?.array?.last?["value"]?["stringValue"]?.string == "short")
    }
  }

  @Test("`event.name` is the type where the list has it, and an error with an exception is a crash too")
  func types() async throws {
    try await withInputRig { snapshot in
      snapshot.daemon.otlp.exceptions = true
      snapshot.namespaces[NamespaceName("otel")!]?.monitorList.append(MonitoredType(ReportType("login")!))
    } _: { rig in
      let crash =
        #"{"timeUnixNano":"1732154081000000000","severityNumber":17,"attributes":["#
        + Self.text("exception.type", "E") + "," + Self.text("exception.stacktrace", "at f") + "]}"
      let large = crash.replacing("at f", with: String(repeating: "at", count: 600_000))
      let records = [Self.log(1, #","eventName":"login""#), Self.log(2, #","eventName":"other""#), crash, large]
      #expect(try await Self.exchange(Self.request(Self.logs(records)), .unix(rig.path)).json == .object([]))
      let types = ["appCrash", "appCrash", "login", "otel.log", "otel.log", "otel.log"]
      #expect(rig.sink.stored.map(\.type).sorted() == types)
      #expect(rig.sink.stored.last { $0.type == "appCrash" }?.meta["PAYLOAD_LEFT_OUT"]?.int == 1_200_000)
      let stored = try #require(rig.sink.stored.first { $0.type == "appCrash" })
      #expect(stored.payload == Array("at f".utf8))
      #expect(stored.meta["exception.type"]?.string == "E")
    }
  }

  @Test("a name of an enumeration that is not known stays as it came")
  func unknownNames() throws {
    for (name, stored) in [(#""ERROR""#, #""ERROR""#), (#""SEVERITY_NUMBER_ERROR""#, "17"), (#""17""#, "17")] {
      let record = try OTLPRecord(json: Array(#"{"severityNumber":\#(name)}"#.utf8), .logs)
      #expect(String(decoding: record.members, as: UTF8.self) == #""severityNumber":\#(stored)"#)
    }
    let span = try OTLPRecord(json: Array(#"{"kind":"FOO","status":{"code":"STATUS_CODE_OK"}}"#.utf8), .traces)
    #expect(String(decoding: span.members, as: UTF8.self) == #""kind":"FOO","status":{"code":1}"#)
  }

  @Test("off, the paths are not there; a reload opens and closes the address, without the connections that are there")
  func reload() async throws {
    try await withInputRig {
      $0.daemon.otlp = .init()
    } _: { rig in
      let off = try await Self.exchange(Self.request(Array("{}".utf8)), .unix(rig.path))
      #expect(off.status == 404)
      #expect(off.json?["message"]?.string?.contains("otlp.listen") == true)
      var daemon = rig.engine.hub.current.daemon
      daemon.otlp.listen = "127.0.0.1:0"
      try await rig.server.listen(daemon)
      let port = try await rig.port(.otlp)
      try await rig.server.listen(daemon)
      #expect(try await rig.port(.otlp) == port)
      let taken = await #expect(throws: EntranceFault.self) {
        daemon.otlp.listen = "127.0.0.1:\(port)"
        try await rig.server.listen(daemon)
      }
      #expect(taken?.key == "otlp.listen")
      #expect(try await rig.port(.otlp) == port)
      daemon.otlp.listen = nil
      try await rig.server.listen(daemon)
      #expect((try? InputClient(.tcp(port))) == nil, "nothing listens there any more")
    }
  }

  @Test("a connection whose other end is closed has no user: the kernel would say root")
  func closedPeer() async throws {
    try await withInputRig { rig in
      let port = try await rig.port(.otlp)
      let client = try InputClient(.tcp(port))
      #expect(await IngestProbe.eventually { await rig.server.counters.connections == 1 })
      let listener = try LoopbackListener(address: "127.0.0.1:0")
      defer { listener.close() }
      do {
        let gone = try InputClient(.tcp(listener.port))
        _ = gone.descriptor
      }
      guard case .connection(let descriptor) = listener.accept(refuse: { _ in }) else {
        throw InputClient.Failure(code: 0)
      }
      defer { close(descriptor) }
      #expect(Entrance.otlp.userID(of: descriptor) == nil)
      _ = client.descriptor
    }
  }

  @Test("nothing is held after any end of a request: no connection, no memory", arguments: 0..<12)
  func ends(part: Int) async throws {
    try await withInputRig { rig in
      let request = Self.request(Self.logs([Self.log(1), Self.log(2)]))
      let length = request.count * part / 11
      let client = try InputClient(.tcp(try await rig.port(.otlp)))
      try await client.send(Array(request.prefix(length)))
      client.finishSending()
      _ = try await client.rest()
      #expect(await IngestProbe.eventually { await rig.server.counters.connections == 0 })
      #expect(await IngestProbe.eventually { await rig.server.counters.memoryBytes == 0 })
      #expect(rig.sink.stored.count == (part == 11 ? 2 : 0))
    }
  }

  private static func headers(_ packing: PacketEncoding) -> [String] {
    packing == .none ? [] : ["Content-Encoding: \(packing.rawValue)"]
  }

  private func packed(_ bytes: [UInt8], _ packing: PacketEncoding) throws -> [UInt8] {
    switch packing {
    case .none: bytes
    case .gzip: try GzipCompressor().compress(bytes)
    case .zstd: try ZstdCompressor().pack(bytes, cuts: [])
    }
  }
}

/// Waits for what another thread does.
enum IngestProbe {
  static func eventually(_ condition: () async -> Bool) async -> Bool {
    for _ in 0..<60_000 {
      if await condition() { return true }
      try? await Task.sleep(for: .milliseconds(1))
    }
    return false
  }
}
