import PrismConfig
import PrismControl
import PrismProtocol
import PrismTestSupport
import Testing

@testable import PrismAdmission
@testable import PrismInputs

@Suite("Entries of the journal") struct JournalTests {
  private static func entry(_ fields: KeyValuePairs<String, String>, cursor: String = "s=1;i=1") -> JournalEntry {
    JournalEntry(
      cursor: cursor, time: 1_732_154_081_000, fields: fields.map { .init(name: $0.key, value: Array($0.value.utf8)) })
  }

  private static func report(_ entry: JournalEntry) throws -> (name: TailReport, meta: JSONValue, payload: String?) {
    var reports = JournalReports(namespace: "logs")
    let submission = reports.report(entry)
    let meta = try JSONValue(parsing: Array(submission.text.drop { $0 != UInt8.openBrace }))
    return (submission.name, meta, submission.payload.map { String(decoding: $0, as: UTF8.self) })
  }

  @Test("fields keep their names, a name that comes twice is a list, and the machine's id is left out") func fields()
    throws
  {
    let report = try Self.report(
      Self.entry([
        "MESSAGE": "a \"b\"\n", "_MACHINE_ID": "secret", "PRIORITY": "3", "OBJECT": "1", "OBJECT": "2",
      ]))
    #expect(report.meta.text == #"{"MESSAGE":"a \"b\"\n","PRIORITY":"3","OBJECT":["1","2"]}"#)
    #expect(report.name.type == "journal" && report.payload == nil)
  }

  @Test("the daemon's own debug lines are no reports, for each report makes some") func ownLines() {
    let own = "/usr/bin/prismd"
    #expect(Self.entry(["_EXE": own, "PRIORITY": "7", "MESSAGE": "a"]).isDebugLine(of: own))
    for fields: KeyValuePairs in [
      ["_EXE": own, "PRIORITY": "6"], ["_EXE": "/usr/bin/other", "PRIORITY": "7"], ["PRIORITY": "7"], ["_EXE": own],
    ] { #expect(!Self.entry(fields).isDebugLine(of: own), "\(fields)") }
    #expect(!Self.entry(["PRIORITY": "7"]).isDebugLine(of: nil))
  }

  @Test("the report id follows from the cursor") func ids() throws {
    let one = try Self.report(Self.entry(["MESSAGE": "a"], cursor: "x"))
    let same = try Self.report(Self.entry(["MESSAGE": "b"], cursor: "x"))
    let other = try Self.report(Self.entry(["MESSAGE": "a"], cursor: "y"))
    #expect(one.name.reportId == same.name.reportId && one.name.reportId != other.name.reportId)
  }

  @Test("replaced bytes and cut fields are named in MENDED") func mended() throws {
    var entry = Self.entry(["PRIORITY": "3"])
    #expect(try Self.report(entry).meta["MENDED"] == nil)
    entry.fields.append(.init(name: "MESSAGE", value: [0x61, 0xFF, 0x62]))
    var meta = try Self.report(entry).meta
    #expect(meta["MESSAGE"] == "a\u{FFFD}b" && meta["MENDED"] == "utf8")
    entry.isCut = true
    meta = try Self.report(entry).meta
    #expect(meta["MENDED"] == "utf8, cut")
  }

  private static func part(_ ordinal: Int, _ text: String, isLast: Bool = false, id: String = "a") -> JournalEntry {
    let last = entry(
      [
        "MESSAGE": text, "CONTAINER_NAME": "web", "CONTAINER_ID_FULL": "c1", "CONTAINER_PARTIAL_ID": id,
        "CONTAINER_PARTIAL_ORDINAL": String(ordinal), "CONTAINER_PARTIAL_LAST": isLast ? "true" : "false",
      ], cursor: "s=1;i=\(ordinal)")
    return isLast ? last : marked(last)
  }

  /// As podman, and Docker before version 23, write them.
  private static func plainPart(_ text: String, isLast: Bool = false, priority: String = "6") -> JournalEntry {
    let last = entry(["MESSAGE": text, "CONTAINER_ID_FULL": "c1", "PRIORITY": priority])
    return isLast ? last : marked(last)
  }

  private static func marked(_ entry: JournalEntry) -> JournalEntry {
    var part = entry
    part.fields.append(.init(name: "CONTAINER_PARTIAL_MESSAGE", value: Array("true".utf8)))
    return part
  }

  @Test("parts without an id go on with the line of their container and stream, and the one without a mark ends it")
  func plainLines() throws {
    var reports = JournalReports(namespace: "logs")
    let parts = [
      Self.plainPart("ab"), Self.plainPart("err", priority: "3"), Self.plainPart("cd"),
      Self.plainPart("ef", isLast: true), Self.plainPart("gh", isLast: true),
      Self.plainPart("or", isLast: true, priority: "3"), Self.plainPart("next", isLast: true, priority: "3"),
    ]
    let texts = parts.compactMap { reports.take($0, now: .zero) }.map { String(decoding: $0.members, as: UTF8.self) }
    let messages = texts.map { $0.split(separator: "\"").first { !["MESSAGE", ":"].contains($0) } }
    #expect(
      texts.allSatisfy { $0.hasPrefix(#""MESSAGE""#) } && messages == ["abcdef", "gh", "error", "next"], "\(texts)")
    #expect(reports.isWhole)
  }

  @Test("a container's line that came in parts is one report, as soon as it is whole") func lines() throws {
    var reports = JournalReports(namespace: "logs")
    let parts = [
      (Self.part(1, "ab"), 0), (Self.part(1, "x", id: "b"), 1), (Self.part(2, "cd"), 1),
      (Self.part(3, "ef", isLast: true), 1),
    ]
    let taken = parts.map { reports.take($0.0, now: .seconds($0.1)) }
    #expect(taken.dropLast().allSatisfy { $0 == nil })
    let whole = try #require(taken[3])
    let text = String(decoding: whole.members, as: UTF8.self)
    #expect(
      text.hasPrefix(#""MESSAGE":"abcdef","CONTAINER_NAME":"web","CONTAINER_ID_FULL":"c1","CONTAINER_PARTIAL_ID":"a""#))
    #expect(try Self.report(Self.part(1, "ab")).name.reportId == whole.name.reportId)
    #expect(!reports.isWhole && reports.takeOld(before: .seconds(1)).isEmpty)
    let rest = reports.takeOld(before: .seconds(2))
    #expect(rest.count == 1 && reports.isWhole)
    #expect(String(decoding: rest[0].members, as: UTF8.self).contains(#""CONTAINER_PARTIAL_LAST":"false""#))
    // The part behind a line that ended early stays a part.
    let late = reports.take(Self.part(2, "y", id: "b"), now: .seconds(3))
    #expect(late != nil)
  }

  @Test(
    "behind a cursor are later numbers of its writer, later times, and the boot that runs, also if its clock begins earlier",
    arguments: [
      ("s=a;i=10;b=1;m=1;t=500;x=0", "s=a;i=11;b=1;m=2;t=400;x=0", true),
      ("s=a;i=10;b=1;m=1;t=500;x=0", "s=a;i=f;b=2;m=2;t=900;x=0", false),
      ("s=a;i=10;b=1;m=1;t=500;x=0", "s=b;i=1;b=2;m=2;t=5;x=0", true),
      ("s=a;i=10;b=1;m=1;t=500;x=0", "s=b;i=1;b=3;m=2;t=5;x=0", false),
      ("s=a;i=10;b=2;m=1;t=500;x=0", "s=b;i=1;b=2;m=2;t=5;x=0", false),
    ]) func cursors(last: String, here: String, isBehind: Bool) throws
  {
    let (last, here) = (try #require(JournalCursor(last)), try #require(JournalCursor(here)))
    #expect(here.isBehind(last, currentBoot: "2") == isBehind)
    #expect(JournalCursor("x") == nil)
  }

  private static let stack = """
    Process 4242 (shop) of user 33 dumped core.

    Stack trace of thread 4242:
    #0  0x00007f kill (libc.so.6 + 0x1)
    #1  0x000055 main (shop + 0x2)
    """

  @Test("a coredump of systemd-coredump is a crash, with its frames; what another program calls one is not")
  func coredumps() throws {
    let fields: KeyValuePairs = [
      "MESSAGE_ID": JournalEntry.coredumpMessage, "MESSAGE": Self.stack, "COREDUMP_UID": "33", "COREDUMP_PID": "4242",
      "COREDUMP_EXE": "/usr/bin/shop", "COREDUMP_COMM": "shop", "COREDUMP_SIGNAL": "11",
      "COREDUMP_SIGNAL_NAME": "SIGSEGV", "COREDUMP_UNIT": "shop.service",
    ]
    var entry = Self.entry(fields)
    entry.fields.append(.init(name: "_SYSTEMD_UNIT", value: Array("systemd-coredump@1-7-0.service".utf8)))
    let crash = try Self.report(entry)
    #expect(crash.name.type == "appCrash" && crash.payload == Self.stack)
    #expect(
      crash.meta.text == #"""
        {"executable":"/usr/bin/shop","command":"shop","signal":"11","reason":"SIGSEGV","unit":"shop.service",\#
        "pid":"4242","frames":["#0  0x00007f kill (libc.so.6 + 0x1)","#1  0x000055 main (shop + 0x2)"]}
        """#)
    entry.fields[entry.fields.count - 1].value = Array("evil.service".utf8)
    #expect(try Self.report(entry).name.type == "journal")
  }

  @Test(
    "a coredump's frames have the build ids of its modules, from the packages or from the text; a container keeps its unit"
  )
  func buildIDs() throws {
    let text = """
      Process 4711 (shop) of user 1000 dumped core.

      Module libcart.so.1 with build-id 00112233445566778899AABBCCDDEEFF00112233
      Module libc.so.6 from deb glibc-2.36-9.amd64
      Stack trace of thread 4711:
      #0  0x00007f10 _ZNK4Cart5totalEv (libcart.so.1 + 0x1f2c)
      #1  0x000055d0 $s4shop3pay5ordersySay (/usr/bin/shop + 0x2)
      #2  0x00007f20 n/a (libcart.so.1 + 0x3)
      #3  0x00007f30 core::ops::function::FnOnce::call_once (libother.so + 0x4)
      """
    let packages =
      #"{"elfType":"coredump","/usr/bin/shop":{"type":"deb","name":"shop","version":"1.2-1","buildId":"9f86d081884c7d65"}}"#
    var entry = Self.entry([
      "MESSAGE_ID": JournalEntry.coredumpMessage, "MESSAGE": text, "COREDUMP_EXE": "/usr/bin/shop",
      "COREDUMP_SIGNAL_NAME": "SIGSEGV", "COREDUMP_CGROUP": "/system.slice/docker-0a1b.scope", "COREDUMP_UID": "33",
      "COREDUMP_CONTAINER_CMDLINE": "/sbin/init", "COREDUMP_PACKAGE_JSON": packages,
    ])
    entry.fields.append(.init(name: "_SYSTEMD_UNIT", value: Array("systemd-coredump@1-7-0.service".utf8)))
    let meta = try Self.report(entry).meta
    #expect(meta["unit"] == "docker-0a1b.scope" && meta["container"] == "/sbin/init" && meta["package"] == "shop 1.2-1")
    let id = "00112233445566778899aabbccddeeff00112233"
    #expect(
      meta["frames"]?.array == [
        ["function": "_ZNK4Cart5totalEv", "module": "libcart.so.1", "buildId": .string(id), "offset": "0x1f2c"],
        ["function": "$s4shop3pay5ordersySay", "module": "shop", "buildId": "9f86d081884c7d65", "offset": "0x2"],
        ["module": "libcart.so.1", "buildId": .string(id), "offset": "0x3"],
        "#3  0x00007f30 core::ops::function::FnOnce::call_once (libother.so + 0x4)",
      ])
    for junk in [
      "#0", "#0 (", "#0 0x1 a ( + )", "Module", "Module a with build-id", "Module a with build-id zz",
      "#0  0x1 n/a (a + 0x)",
    ] {
      #expect(CoredumpFrames(junk, packages: "[{", executable: "a").frames.allSatisfy { $0.string != nil })
    }
  }

  @Test("a coredump has the frames of the thread that died, and as many as leave room for the rest of the meta")
  func threads() {
    let id = "00112233445566778899aabbccddeeff00112233"
    let frame = { (number: Int, name: String) in "#\(number)  0x000055d0 \(name) (/usr/bin/shop + 0x\(number))" }
    let text = """
      Module /usr/bin/shop with build-id \(id)
      Stack trace of thread 1:
      \((0..<30).map { frame($0, "panic\($0)") }.joined(separator: "\n"))

      Stack trace of thread 2:
      \(frame(0, "idle"))
      """
    let frames = CoredumpFrames(text, packages: nil, executable: nil).frames
    #expect(frames.count == 30 && frames.last?["function"] == "panic29", "panic machinery hides no frame of the app")
    let long = (0..<60).map { frame($0, String(repeating: "x", count: 250)) }.joined(separator: "\n")
    let kept = CoredumpFrames("Module shop with build-id \(id)\n" + long, packages: nil, executable: nil).frames
    #expect(kept.count > 8 && kept.reduce(0) { $0 + $1.bytes.count } <= 6144)
  }

  @Test(
    "a sender is the user that the journal says, or no user: never root for want of a field",
    arguments: [
      (["_UID": "1000"], 1000), (["_UID": "0"], 0), ([:], nil), (["_UID": ""], nil), (["_UID": "root"], nil),
      (["_UID": "-1"], nil), (["_UID": "4294967295"], nil), (["_TRANSPORT": "kernel"], 0),
      (["_TRANSPORT": "journal"], nil), (["_TRANSPORT": "kernel", "_UID": "7"], 7),
      (["_SYSTEMD_UNIT": "systemd-coredump@1.service", "MESSAGE_ID": JournalEntry.coredumpMessage, "_UID": "0"], nil),
      (
        [
          "_SYSTEMD_UNIT": "systemd-coredump@1.service", "MESSAGE_ID": JournalEntry.coredumpMessage,
          "_TRANSPORT": "kernel",
        ], nil
      ),
      (
        [
          "_SYSTEMD_UNIT": "systemd-coredump@1.service", "MESSAGE_ID": JournalEntry.coredumpMessage, "_UID": "0",
          "COREDUMP_UID": "33",
        ], 33
      ),
    ] as [([String: String], UInt32?)])
  func senders(fields: [String: String], user: UInt32?) {
    var reports = JournalReports(namespace: "logs")
    // One of another transport before it must not lend it its sender.
    _ = reports.report(Self.entry(["_TRANSPORT": "kernel"]))
    let entry = JournalEntry(
      cursor: "x", time: 1, fields: fields.map { .init(name: $0.key, value: Array($0.value.utf8)) })
    let peer = reports.report(entry).source.peer
    #expect(peer.userID == user)
    #expect(peer.accountID == user ?? .max)
  }

  @Test("a unit means its own entries, those of the manager about it, and its coredumps") func terms() {
    var settings = DaemonConfiguration.Journal()
    #expect(!settings.isOn && JournalTerm.terms(of: settings).isEmpty)
    var (unit, priority) = (JournalMatch(), JournalMatch())
    (unit.unit, unit.identifier, priority.priority) = ("a.service", "a", 0...2)
    settings.match = [unit, priority]
    settings.coredumps = true
    let dump = "MESSAGE_ID=\(JournalEntry.coredumpMessage)"
    #expect(
      JournalTerm.terms(of: settings).map(\.matches) == [
        ["_SYSTEMD_UNIT=a.service", "SYSLOG_IDENTIFIER=a"], ["_PID=1", "UNIT=a.service", "SYSLOG_IDENTIFIER=a"],
        [dump, "COREDUMP_UNIT=a.service"], ["PRIORITY=0", "PRIORITY=1", "PRIORITY=2"],
        [dump],
      ])
    settings.match.append(JournalMatch())
    #expect(JournalTerm.terms(of: settings).isEmpty, "every entry, also one without the journal's own fields")
  }
}
