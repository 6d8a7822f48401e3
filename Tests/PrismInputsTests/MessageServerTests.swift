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

/// StatsD and syslog through the ingest server, to a real store (docs/statsd-syslog.md).
@Suite struct MessageServerTests {
  /// A program's socket for datagrams.
  private final class Sender {
    let descriptor: Int32
    private let place: InputClient.Place

    init(_ place: InputClient.Place) {
      self.place = place
      let isUnix = if case .unix = place { true } else { false }
      descriptor = socket(isUnix ? AF_UNIX : AF_INET, Int32(SOCK_DGRAM.rawValue), 0)
    }

    deinit { close(descriptor) }

    func send(_ bytes: [UInt8]) throws {
      let count: Int
      switch place {
      case .unix(let path):
        let address = try #require(UnixAddress(path: path))
        count = address.withPointer { sendto(descriptor, bytes, bytes.count, 0, $0, $1) }
      case .tcp(let port):
        var address = sockaddr_in()
        (address.sin_family, address.sin_port) = (sa_family_t(AF_INET), port.bigEndian)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        count = withUnsafePointer(to: &address) { pointer in
          pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            sendto(descriptor, bytes, bytes.count, 0, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
          }
        }
      }
      guard count == bytes.count else { throw InputClient.Failure(code: errno) }
    }

    func send(_ text: String) throws { try send(Array(text.utf8)) }
  }

  private static func withRig(
    _ change: @escaping (inout Snapshot) -> Void = { _ in }, _ body: (InputRig, String) async throws -> Void
  ) async throws {
    let temporary = TemporaryFolder()
    let folder = temporary.path
    let configure = { (snapshot: inout Snapshot) in
      for name in ["metrics", "logs"] {
        let list = ["statsd", "syslog", "net"].map { MonitoredType(ReportType($0)!) }
        let namespace = NamespaceConfiguration(name: NamespaceName(name)!, monitorList: list)
        snapshot.namespaces[namespace.name] = namespace
      }
      (snapshot.daemon.statsd.socket, snapshot.daemon.statsd.listen) = ("\(folder)/statsd", "127.0.0.1:0")
      (snapshot.daemon.syslog.socket, snapshot.daemon.syslog.listen) = ("\(folder)/log", "127.0.0.1:0")
      change(&snapshot)
    }
    try await withInputRig(configure) { try await body($0, folder) }
  }

  private func waitUntil(_ what: Comment, _ condition: () async -> Bool) async throws {
    try #require(await IngestProbe.eventually(condition), what)
  }

  private static func count(
    _ rig: InputRig, _ input: String, _ outcome: IngestCounters.Message.Outcome
  ) async -> Int {
    await rig.server.counters.messages[.init(input: input, outcome: outcome)] ?? 0
  }

  @Test("samples over UDP and a Unix socket are counted together by sender, metric and tags") func statsd() async throws
  {
    try await Self.withRig { rig, folder in
      let udp = Sender(.tcp(try await rig.port(.statsdUDP)))
      let unix = Sender(.unix("\(folder)/statsd"))
      for _ in 0..<100 { try udp.send("a:1|c|#x:1\na:2|c|#x:1\nbroken\n_e{1,1}:a|b\n_sc|a|0") }
      for number in 0..<50 { try unix.send("wait:\(number)|ms\n") }
      try await waitUntil("all are stored") { await Self.count(rig, "statsd", .stored) == 250 }
      for outcome in [IngestCounters.Message.Outcome.malformed, .event, .serviceCheck] {
        #expect(await Self.count(rig, "statsd", outcome) == 100)
      }
      #expect(
        await Self.count(rig, "statsd", .dropped) == 0 && rig.sink.stored.isEmpty, "no sample is a row of its own")
      #expect(
        rig.sink.lines.filter { $0.contains("lines of statsd are left out") }.count == 3, "each kind is logged once")
    }
  }

  @Test("a message of a Unix socket has the sender that the kernel names, and one of UDP has no sender") func senders()
    async throws
  {
    try await Self.withRig { rig, folder in
      try Sender(.unix("\(folder)/log")).send("<14>Nov 28 01:37:24 root[1]: SYS_PEER_UID=0")
      try Sender(.tcp(try await rig.port(.syslogUDP))).send("<14>udp: here")
      try await waitUntil("both are stored") { rig.sink.stored.count == 2 }
      let metas = Dictionary(uniqueKeysWithValues: rig.sink.stored.map { ($0.meta["app"]?.string ?? "", $0.meta) })
      let unix = try #require(metas["root"])
      #expect(unix["SYS_PEER_PID"]?.string == "\(getpid())", "\(unix.text)")
      #expect(unix["SYS_PEER_UID"]?.string == "\(geteuid())")
      #expect(unix["pid"] == "1" && unix["severity"] == "info" && unix["message"] == "SYS_PEER_UID=0")
      let udp = try #require(metas["udp"])
      #expect(udp["SYS_PEER_UID"] == nil && udp["SYS_PEER_PID"] == nil, "\(udp.text)")
      #expect(rig.sink.stored.allSatisfy { $0.type == "syslog" && $0.namespace == "logs" })
    }
  }

  @Test("`allow` holds: a user that it does not name, and a sender that the kernel does not name, are refused")
  func allowed() async throws {
    let configure = { @Sendable (snapshot: inout Snapshot) in
      let logs = NamespaceName("logs")!
      snapshot.namespaces[logs]?.allow = NamespaceConfiguration.Allow(userIDs: [geteuid()], groupIDs: [])
      let metrics = NamespaceName("metrics")!
      snapshot.namespaces[metrics]?.allow = NamespaceConfiguration.Allow(userIDs: [geteuid() + 1], groupIDs: [])
    }
    try await Self.withRig(configure) { rig, folder in
      try Sender(.unix("\(folder)/log")).send("<14>a: 1")
      try Sender(.tcp(try await rig.port(.syslogUDP))).send("<14>b: 1")
      try Sender(.unix("\(folder)/statsd")).send("a:1|c")
      try await waitUntil("all are decided") {
        let stored = await Self.count(rig, "syslog", .stored)
        let refused = await Self.count(rig, "syslog", .refused)
        return await (stored, refused, Self.count(rig, "statsd", .refused)) == (1, 1, 1)
      }
      #expect(rig.sink.stored.map { $0.meta["app"] } == ["a"])
      #expect(rig.sink.lines.contains { $0.contains("samples of statsd are refused") })
    }
  }

  @Test("messages over TCP are stored in their order with the user of the connection, behind lengths and in lines")
  func tcp() async throws {
    try await Self.withRig { rig, _ in
      let client = try InputClient(.tcp(try await rig.port(.syslogTCP)))
      let lines = (0..<500).map { "<14>1 - h app - - - line \($0)" }
      let text = lines.enumerated().map { $0 % 2 == 0 ? "\($1)\n" : "\($1.utf8.count) \($1)" }.joined()
      try await client.send(Array(text.utf8), piece: 777)
      try await waitUntil("all are stored") { rig.sink.stored.count == 500 }
      #expect(rig.sink.stored.map { $0.meta["message"]?.string } == (0..<500).map { "line \($0)" })
      #expect(rig.sink.stored.allSatisfy { $0.meta["SYS_PEER_UID"]?.string == "\(geteuid())" })
      try await client.send(Array("<14>last".utf8))
      client.finishSending()
      #expect(try await client.rest().isEmpty, "no answer")
      try await waitUntil("the end of the connection ends a line") { rig.sink.stored.last?.meta["message"] == "last" }
    }
  }

  @Test("a connection waits while its messages can't be stored, and a datagram does not") func waits() async throws {
    try await Self.withRig { rig, folder in
      rig.sink.fail(Refusal(.storeFull, "full", retryMilliseconds: 1))
      try Sender(.unix("\(folder)/log")).send("<14>lost: 1")
      try await waitUntil("the datagram is lost, and counted") { await Self.count(rig, "syslog", .refused) == 1 }
      #expect(rig.sink.lines.contains { $0.contains("messages of syslog are refused") && $0.contains("full") })
      let client = try InputClient(.tcp(try await rig.port(.syslogTCP)))
      try await client.send(Array("<14>kept: 1\n".utf8))
      try await waitUntil("the connection's is tried") { await rig.server.counters.tally.refused[.storeFull] ?? 0 > 2 }
      rig.sink.fail(nil)
      try await waitUntil("it is stored") { rig.sink.stored.map { $0.meta["app"] } == ["kept"] }
    }
  }

  @Test(
    "a datagram waits for a namespace whose file is missing for a moment; one that stays away costs it, counted and named",
    arguments: [true, false], [true, false])
  func missing(isSyslog: Bool, isBack: Bool) async throws {
    try await Self.withRig {
      $0.namespaces = [:]
    } _: { rig, _ in
      let (time, hub, log) = (ManualTime(), rig.engine.hub, Logger { rig.sink.say($0) })
      let statsd = StatsdInput(time: time, log: log) { hub.current }
      let syslog = SyslogInput(time: time, log: log) { hub.current }
      let datagram = Datagram(
        Array((isSyslog ? "<14>web: 1" : "web:1|c").utf8), isCut: false,
        from: ReportingPeer(processID: getpid(), userID: geteuid(), groupID: getegid()))
      let take = { @Sendable in
        isSyslog ? await syslog.take([datagram], to: rig.server) : await statsd.take([datagram], to: rig.server)
      }
      async let first = take()
      for round in 0..<5 {
        try await waitUntil("it waits, round \(round)") { time.sleeperCount == 1 }
        if isBack, round == 3 {
          var snapshot = hub.current
          for name in ["metrics", "logs"].map({ NamespaceName($0)! }) {
            let list = ["statsd", "syslog"].map { MonitoredType(ReportType($0)!) }
            snapshot.namespaces[name] = NamespaceConfiguration(name: name, monitorList: list)
          }
          await rig.engine.publish(snapshot)
        }
        time.advance(by: .seconds(2))
        if isBack, round == 3 { break }
      }
      #expect(await first[isBack ? .stored : .refused] == 1)
      #expect(await take()[isBack ? .stored : .refused] == 1, "at once")
      let isNamed = rig.sink.lines.contains { $0.contains("are refused") && $0.contains("is not configured: write ") }
      #expect(isBack || isNamed)
    }
  }

  @Test("long messages are cut and named, and not refused") func long() async throws {
    try await Self.withRig { rig, folder in
      let text = String(repeating: "äx", count: 60_000)
      try Sender(.unix("\(folder)/log")).send(Array("<14>unix: \(text)".utf8))
      let client = try InputClient(.tcp(try await rig.port(.syslogTCP)))
      try await client.send(Array("<14>tcp: \(text)\n".utf8))
      try await waitUntil("both are stored") { rig.sink.stored.count == 2 }
      for report in rig.sink.stored {
        #expect(report.meta["MENDED"]?.string?.hasSuffix("cut") == true && report.meta["TRUNCATED"] != nil)
        #expect(report.meta["message"]?.string?.hasPrefix("äxäx") == true)
      }
      try await waitUntil("both are counted") { await Self.count(rig, "syslog", .cut) == 2 }
    }
  }

  @Test("types follow the configuration in force, and a socket that it no longer names is closed") func reload()
    async throws
  {
    try await Self.withRig { rig, folder in
      let sender = Sender(.unix("\(folder)/log"))
      try sender.send("<14>dhcp[7]: a")
      try await waitUntil("it is stored") { rig.sink.stored.count == 1 }
      var next = rig.engine.hub.current
      next.daemon.syslog.types = [.init(glob: "dh*", type: ReportType("net")!)]
      await rig.engine.publish(next)
      try sender.send("<14>dhcp[7]: b")
      try await waitUntil("the next one, too") { rig.sink.stored.count == 2 }
      #expect(rig.sink.stored.map(\.type) == ["syslog", "net"])
      try sender.send("<14>dhcp[7]: c")
      next.daemon.syslog.socket = nil
      try await rig.server.listen(next.daemon)
      #expect(throws: InputClient.Failure.self) { try sender.send("<14>d: d") }
      try await waitUntil("the datagrams before are stored") { rig.sink.stored.count == 3 }
    }
  }

  @Test("what came before an orderly stop is stored") func stop() async throws {
    try await Self.withRig { rig, folder in
      let sender = Sender(.unix("\(folder)/log"))
      for number in 0..<5 { try sender.send("<14>a: \(number)") }
      await rig.server.stop()
      #expect(rig.sink.stored.count == 5)
    }
  }

  @Test("datagrams that the kernel drops are counted, and the log says so once") func dropped() async throws {
    try await Self.withRig { rig, _ in
      let port = try await rig.port(.statsdUDP)
      let sent = 20_000
      try await rig.server.hold {
        let sender = Sender(.tcp(port))
        for _ in 0..<sent { try sender.send("a:1|c") }
      }
      try await waitUntil("each is stored or counted") {
        let stored = await Self.count(rig, "statsd", .stored)
        return await stored + Self.count(rig, "statsd", .dropped) == sent
      }
      #expect(await Self.count(rig, "statsd", .dropped) > 0)
      #expect(rig.sink.lines.filter { $0.contains("the kernel dropped datagrams") }.count == 1)
    }
  }

  @Test("TLS and the requests of a web page are no messages") func foreign() async throws {
    try await Self.withRig { rig, _ in
      let client = try InputClient(.tcp(try await rig.port(.syslogTCP)))
      try await client.send([0x16, 3, 1, 2, 0, 1, 0, 1, 0xFC, 3, 3] + [UInt8](repeating: 7, count: 40))
      #expect(try await client.rest().isEmpty)
      #expect(await rig.server.counters.foreignProtocols == [.tls: 1])
      let page = try InputClient(.tcp(try await rig.port(.syslogTCP)))
      try await page.send(Array("POST / HTTP/1.1\r\nHost: localhost\r\n\r\n<11>till: forged\n".utf8))
      #expect(try await page.rest().isEmpty)
      #expect(await rig.server.counters.foreignProtocols == [.tls: 1, .other: 1] && rig.sink.stored.isEmpty)
    }
  }
}

extension IngestServer {
  /// Its thread reads nothing meanwhile.
  fileprivate func hold(_ body: @Sendable () throws -> Void) throws { try body() }
}
