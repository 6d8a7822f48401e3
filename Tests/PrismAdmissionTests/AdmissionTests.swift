import PrismAdmission
import PrismBase
import PrismConfig
import PrismProtocol
import Testing

@Suite("Admission: may it be taken, and what does it become?")
struct AdmissionTests {
  private func store(
    _ lines: String..., snapshot: Snapshot = AdmissionSupport.snapshot()
  ) throws -> [(meta: JSONValue, payload: [UInt8]?)] {
    var conversation = AdmissionSupport.conversation(snapshot)
    conversation.consume(lines.joined(separator: "\n") + "\n")
    var store = CommittingStore()
    store.commit(&conversation)
    return try store.reports
  }

  private func code(_ line: String, peer: ReportingPeer = AdmissionSupport.peer) -> String? {
    var conversation = AdmissionSupport.conversation(peer: peer)
    conversation.consume(line + "\n")
    return conversation.answers().first?["code"]?.string
  }

  @Test(
    "the first step that says no gives the code",
    arguments: [
      (#"{"namespace":"root","type":"?","meta":{}}"#, "forbidden"),
      (#"{"namespace":"none","type":"?","meta":{}}"#, "unknown_namespace"),
      (#"{"namespace":"no name","type":"?","meta":{}}"#, "unknown_namespace"),
      (#"{"namespace":"mute","type":"?","meta":{}}"#, "gather_off"),
      (#"{"namespace":"shop","type":"?","meta":{}}"#, "unknown_type"),
      (#"{"namespace":"shop","type":"appHealth","meta":{"a":1}}"#, "forbidden"),
      (#"{"namespace":"shop","type":"ringHealth","meta":{"a":1}}"#, "forbidden"),
      (#"{"namespace":"shop","type":"order","meta":{}}"#, "bad_request"),
      (#"{"namespace":"shop","type":"order"}"#, "bad_request"),
      (#"{"namespace":"shop","type":"order","meta":[1]}"#, "bad_request"),
      (
        #"{"type":"net","meta":{"a":"\#(String(repeating: "x", count: 10_240))"},"payloadBytes":1001}"#,
        "meta_too_large"
      ),
      (#"{"type":"net","meta":{"a":1},"payloadBytes":1001}"#, "payload_too_large"),
      (#"{"type":"net","meta":{"a":1},"payload":"\#(String(repeating: "AAAA", count: 334))"}"#, "payload_too_large"),
      (#"{"type":"net","meta":{"a":1},"payload":"AAA"}"#, "bad_request"),
    ])
  func order(line: String, expected: String) {
    #expect(code(line) == expected)
  }

  @Test("the refusal of a type that is no name says so", arguments: ["=type", "", "a b", "-a"])
  func typeIsNoName(type: String) {
    var conversation = AdmissionSupport.conversation()
    conversation.consume(#"{"type":"\#(type)","meta":{"a":1}}"# + "\n")
    let answer = conversation.answers().first
    #expect(answer?["code"] == "unknown_type" && answer?["message"]?.string?.contains("is no name") == true)
  }

  @Test(
    "a payload whose type does not upload payloads is left out, and the answer says so",
    arguments: [#","payloadBytes":3}"# + "\nabc", #","payload":"YWJj"}"# + "\n", #","payloadBytes":0}"# + "\n"])
  func keptBackPayload(rest: String) throws {
    let snapshot = AdmissionSupport.snapshot {
      $0.namespaces[.prism]?.monitorList = [MonitoredType(ReportType("net")!)]
    }
    var conversation = AdmissionSupport.conversation(snapshot)
    conversation.consume(#"{"type":"net","meta":{"a":1}"# + rest + #"{"type":"net","meta":{"last":true}}"# + "\n")
    var store = CommittingStore()
    store.commit(&conversation)
    #expect(try store.reports.map(\.payload) == [nil, nil])
    let answers = conversation.answers()
    #expect(answers.map { $0["payloadLeftOut"]?.bool } == [true, nil])
    #expect(answers.allSatisfy { $0["status"]?.string == "stored" })
  }

  @Test(
    "a crash, or with `onLargePayload: meta` any report, is stored without a payload that is too large",
    arguments: LargePayload.all)
  func largePayload(_ sent: LargePayload) throws {
    let rules = [("net", NamespaceConfiguration.OnLargePayload.meta), ("appCrash", .meta), ("appCrash", .refuse)]
    for (type, rule) in rules {
      let snapshot = AdmissionSupport.snapshot {
        $0.namespaces[.prism]?.onLargePayload = rule
        $0.namespaces[.prism]?.sealKey = [UInt8](repeating: 9, count: 32)
      }
      let last = #"{"type":"net","meta":{"last":true}}"#
      let own = #"{"type":"\#(type)","meta":{"a":1,"SYS_BRAND":"own"}"# + sent.rest
      let reports = try store(own + last, snapshot: snapshot)
      try #require(reports.count == 2, "\(type)")
      #expect(reports[0].meta["PAYLOAD_LEFT_OUT"]?.int == sent.leftOut)
      #expect(reports[0].meta["a"]?.int == 1)
      #expect(reports[0].payload?.count == (sent.leftOut == nil ? 1000 : nil))
      #expect(reports[1].meta["last"]?.bool == true)
    }
  }

  @Test("a report that is stored without its payload is counted")
  func largePayloadCounted() {
    var conversation = AdmissionSupport.conversation(
      AdmissionSupport.snapshot { $0.namespaces[.prism]?.onLargePayload = .meta })
    conversation.consume(#"{"type":"net","meta":{"a":1},"payloadBytes":1001}"# + "\n")
    let tally = conversation.takeTally()
    #expect((tally.received, tally.leftOutPayloads, tally.refused) == (1, 1, [:]))
  }

  @Test("a systemd unit lets in the processes that run in it, and no others")
  func allowedUnits() {
    let line = #"{"namespace":"unit","type":"order","meta":{"a":1}}"#
    for (unit, expected) in [("shop-pos.service", nil), ("shop.service", "forbidden"), (nil, "forbidden")] {
      let peer = ReportingPeer(userID: 1000, groupIDs: [], processID: 1, unit: unit)
      #expect(code(line, peer: peer) == expected, "\(unit ?? "none")")
    }
    #expect(code(line, peer: ReportingPeer(userID: 7, groupIDs: [], processID: 1)) == nil, "or the user")
  }

  @Test("a group lets in, a foreign user stays out")
  func allow() {
    let line = #"{"namespace":"vip","type":"order","meta":{"a":1}}"#
    #expect(code(line) == nil)
    #expect(code(line, peer: ReportingPeer(userID: 1000, groupIDs: [1000], processID: 1)) == "forbidden")
    let root = #"{"namespace":"root","type":"order","meta":{"a":1}}"#
    #expect(code(root, peer: ReportingPeer(userID: 0, groupIDs: [0], processID: 1)) == nil)
  }

  @Test("the merged meta has what the host, the app, the kernel and the daemon say")
  func merged() throws {
    let meta = try store(
      #"{"hello":{"app":{"APP_VERSION":"4.2.0","SITE":"b"}}}"#,
      #"{"namespace":"shop","type":"order","meta":{"n":1},"reportId":"r1"}"#,
      snapshot: AdmissionSupport.snapshot(common: ["SITE": "a", "ROOM": "r"]))[0].meta
    let expected = [
      "MONITOR_TYPE": "shop-order", "REPORT_ID": "r1", "SYS_SYSTEM_MODEL": "linux", "SYS_DEVICE_ID": "device-1",
      "SYS_BRAND": "ACME", "SYS_PHONE_MODEL": "Box 7", "SYS_SYSTEM_VERSION": "Debian 12, Linux 6",
      "APP_PLATFORM": "linux", "APP_NAME": "posd", "APP_VERSION": "4.2.0", "APP_PACKAGE_NAME": "/usr/bin/posd",
      "APP_SESSION_ID": "session-1", "SYS_PEER_UID": "1000", "SYS_PEER_PID": "4711", "SYS_PEER_EXE": "/usr/bin/posd",
      "SYS_PEER_UNIT": "pos.service",
      "APP_MONITOR_VERSION": "1", "SITE": "b", "ROOM": "r",
    ]
    for (key, value) in expected { #expect(meta[key]?.string == value, "\(key)") }
    #expect(meta["CREATE_TIME"]?.int == Int(AdmissionSupport.now))
    #expect(meta["IS_BIZ"]?.bool == true)
    #expect(meta["n"]?.int == 1)
    #expect(meta.object?.count == expected.count + 3)
  }

  @Test("a report tells by which setting of the clock its time is, and no program can tell another")
  func clock() throws {
    var host = AdmissionSupport.facts
    host.bootID = "b00t"
    var conversation = IngestConversation(
      session: Session(
        rules: AdmissionRules(AdmissionSupport.snapshot()), host: host, peer: AdmissionSupport.peer, sessionID: "s"),
      version: "9.9")
    var store = CommittingStore()
    for bootTime in [1000, 5_000_000] as [Int64] {
      conversation.take(ClockSetting(bootTime: bootTime))
      conversation.consume(
        #"{"type":"net","meta":{"a":1,"SYS_BOOT_TIME":"7","SYS_CLOCK_STEP":"7","SYS_CLOCK_BOOT":"earlier"}}"# + "\n")
      store.commit(&conversation)
    }
    let metas = try store.reports.map(\.meta)
    #expect(metas.map { $0["SYS_BOOT_TIME"]?.string } == ["1000", "5000000"])
    #expect(metas.allSatisfy { $0["SYS_BOOT_ID"]?.string == "b00t" && $0["SYS_CLOCK_STEP"] == nil })
    #expect(metas.allSatisfy { $0["SYS_CLOCK_BOOT"] == nil && $0["a"]?.int == 1 })
  }

  @Test("the common information wins over the meta, which keeps the rest byte for byte")
  func commonWins() throws {
    let meta = try store(
      #"{"type":"net","meta":{"a":1.50,"\u0053YS_BRAND":"mine","CREATE_TIME":1,"REPORT_ID":"x","b":[ 1 ]}}"#)[0].meta
    #expect(meta["SYS_BRAND"]?.string == "ACME")
    #expect(meta["CREATE_TIME"]?.int == Int(AdmissionSupport.now))
    #expect(meta["REPORT_ID"]?.string != "x")
    #expect(meta["a"] == .number("1.50"))
    #expect(meta.text.hasSuffix(#""a":1.50,"b":[1]}"#))
  }

  @Test("a crash's meta wins, but not over what the daemon and the kernel say")
  func crashWins() throws {
    let meta = try store(
      #"{"type":"appCrash","meta":{"APP_VERSION":"1.0","SYS_BRAND":"old","CREATE_TIME":5,"SYS_PEER_UID":"0","IS_BIZ":true,"MONITOR_TYPE":"x"}}"#
    )[0].meta
    #expect(meta["APP_VERSION"]?.string == "1.0")
    #expect(meta["SYS_BRAND"]?.string == "old")
    #expect(meta["CREATE_TIME"]?.int == 5)
    #expect(meta["SYS_PEER_UID"]?.string == "1000")
    #expect(meta["IS_BIZ"]?.bool == false)
    #expect(meta["MONITOR_TYPE"]?.string == "appCrash")
    #expect(meta["SYS_DEVICE_ID"]?.string == "device-1")
  }

  @Test("a key that is twice in a meta is once in the result, with its last value")
  func repeatedKey() throws {
    let meta = try store(#"{"type":"net","meta":{"a":1,"b":2,"\u0061":3}}"#)[0].meta
    #expect(meta["a"]?.int == 3)
    #expect(meta["b"]?.int == 2)
  }

  @Test("a meta of nothing but common keys is taken")
  func onlyCommonKeys() throws {
    #expect(try store(#"{"type":"net","meta":{"SYS_BRAND":1}}"#)[0].meta["SYS_BRAND"]?.string == "ACME")
  }

  @Test("the merged meta may have 10,240 bytes, not one more")
  func largestMeta() throws {
    let line = { #"{"type":"net","meta":{"a":"\#(String(repeating: "x", count: $0))"}}"# }
    var conversation = AdmissionSupport.conversation()
    conversation.consume(line(1) + "\n")
    let room = Limits.metaBytesMax - conversation.takeBatches()[0].rows[0].metaBytes + 1
    #expect(code(line(room)) == nil)
    #expect(code(line(room + 1)) == "meta_too_large")
  }

  @Test(
    "a stamp more than five minutes ahead is set to now",
    arguments: [(0, 0), (300_000, 300_000), (300_001, 0), (-86_400_000, -86_400_000)] as [(Int64, Int64)])
  func stamps(ahead: Int64, expected: Int64) throws {
    let line = #"{"type":"net","meta":{"a":1},"createdTime":\#(AdmissionSupport.now + ahead)}"#
    #expect(try store(line)[0].meta["CREATE_TIME"]?.int == Int(AdmissionSupport.now + expected))
  }

  @Test(
    "a stamp that is not in milliseconds is refused with what it looks like",
    arguments: [
      ("1763700000", "`createdTime` is in milliseconds since 1970; 1763700000 looks like seconds"),
      ("1763700000.25", "`createdTime` is in milliseconds since 1970; 1763700000 looks like seconds"),
      ("1.5", "`createdTime` is in milliseconds since 1970; 1 looks like no time of day"),
      ("0", "`createdTime` is in milliseconds since 1970; 0 looks like no time of day"),
      ("99999999999", "`createdTime` is in milliseconds since 1970; 99999999999 looks like seconds"),
    ])
  func wrongUnits(stamp: String, message: String) throws {
    var conversation = AdmissionSupport.conversation()
    conversation.consume(#"{"type":"net","meta":{"a":1},"createdTime":\#(stamp)}"# + "\n")
    #expect(conversation.takeBatches().isEmpty)
    let answer = try JSONValue(parsing: conversation.output)
    #expect(answer["code"]?.string == "bad_request" && answer["message"]?.string == message)
  }

  @Test(
    "a stamp in milliseconds is taken, with a fraction too, and where the daemon's own clock began in 1970",
    arguments: [("100000000000", AdmissionSupport.now), ("1600000000000.75", AdmissionSupport.now), ("5", 9)])
  func rightUnits(stamp: String, now: Int64) {
    var conversation = AdmissionSupport.conversation()
    conversation.consume(#"{"type":"net","meta":{"a":1},"createdTime":\#(stamp)}"# + "\n", unixMilliseconds: now)
    #expect(conversation.takeBatches().first?.rows.first?.createdTime == Int64(Double(stamp)!))
  }

  @Test("crashes go first, realtime types next, the rest last")
  func priorities() throws {
    var conversation = AdmissionSupport.conversation()
    conversation.consume(
      #"{"type":"appCrash","meta":{"a":1}}"# + "\n" + #"{"type":"net","meta":{"a":1}}"# + "\n"
        + #"{"namespace":"shop","type":"urgent","meta":{"a":1}}"# + "\n")
    let batches = conversation.takeBatches()
    #expect(batches.map(\.namespace) == [.prism, AdmissionSupport.shop])
    #expect(batches.flatMap(\.types).map(\.priority) == [.crash, .rest, .realtime])
    #expect(batches.flatMap(\.types).map(\.isRealtime) == [true, false, true])
  }

  @Test("payloads come as raw bytes or as base64, slashes escaped or not, and may be empty")
  func payloads() throws {
    let reports = try store(
      #"{"type":"net","meta":{"a":1},"payloadBytes":5}"# + "\nhe\nlo"
        + #"{"type":"net","meta":{"a":1},"payload":"\/\/8="}"#,
      #"{"type":"net","meta":{"a":1},"payloadBytes":0}"#, #"{"type":"net","meta":{"a":1},"payload":""}"#,
      #"{"type":"net","meta":{"a":1}}"#)
    #expect(reports.map(\.payload) == [Array("he\nlo".utf8), [0xFF, 0xFF], [], [], nil])
  }
}
