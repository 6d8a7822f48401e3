import PrismConfig
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

  private static func report(_ entry: JournalEntry) throws -> (name: ReportName, meta: JSONValue, payload: String?) {
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
    #expect(one.name.reportID == same.name.reportID && one.name.reportID != other.name.reportID)
  }

  @Test("an entry that is too large for a meta is cut at its longest strings") func cut() throws {
    let report = try Self.report(Self.entry(["MESSAGE": String(repeating: "x", count: 60_000), "PRIORITY": "3"]))
    #expect(report.meta.bytes.count <= Limits.metaBytesMax - 4096 + 2)
    #expect(report.meta["TRUNCATED"]?.int ?? 0 > 50_000 && report.meta["PRIORITY"] == "3")
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
    settings.match = [unit, priority, JournalMatch()]
    settings.coredumps = true
    let dump = "MESSAGE_ID=\(JournalEntry.coredumpMessage)"
    #expect(
      JournalTerm.terms(of: settings).map(\.matches) == [
        ["_SYSTEMD_UNIT=a.service", "SYSLOG_IDENTIFIER=a"], ["_PID=1", "UNIT=a.service", "SYSLOG_IDENTIFIER=a"],
        [dump, "COREDUMP_UNIT=a.service"], ["PRIORITY=0", "PRIORITY=1", "PRIORITY=2"],
        ["audit", "driver", "syslog", "journal", "stdout", "kernel"].map { "_TRANSPORT=\($0)" }, [dump],
      ])
  }
}
