import PrismControl
import PrismProtocol
import Testing

@testable import prismctl

@Suite("prismctl doctor")
struct DoctorTests {
  private static func status(
    waiting: Int = 0, dead: Int = 0, oldest: Int = 0, stored: Int = 0, delivered: Int = 0, state: String = "active",
    circuit: String = "closed"
  ) -> JSONValue {
    let queue: JSONValue = [
      "waiting": .int(waiting), "claimed": 0, "dead": .int(dead), "oldestAgeSeconds": .int(oldest),
      "ledger": ["stored": .int(stored), "delivered": .int(delivered)],
    ]
    let failure: JSONValue = ["time": "2026-01-02T00:00:00.000Z", "status": 401, "cause": "answered 401"]
    return [
      "configFaults": [],
      "namespaces": [
        "shop": ["state": .string(state), "circuit": .string(circuit), "lastFailure": failure, "meta": queue]
      ],
    ]
  }

  private static func examine(
    _ before: JSONValue, _ now: JSONValue, explained words: String = "order meta: network: no network"
  ) -> [Finding] {
    QueueCheck.findings(StatusReport(controlJSON: before), StatusReport(controlJSON: now)) { _ in words }
  }

  @Test("requests over a limit are named with their input") func limits() {
    let status: JSONValue = ["refused": ["busy": 4, "too large forward": 2], "namespaces": [:]]
    let found = Self.examine(status, status).first
    #expect(found?.result == .warning && found?.text == "2 requests of forward were larger than is taken")
  }

  @Test("refusals of the past are counted, and how to see the next ones is said") func unconfigured() {
    let status: JSONValue = ["refused": ["unknown_type": 4], "namespaces": [:]]
    let found = Self.examine(status, status).first
    #expect(found?.advice == "`prismctl tail --refused` shows the next ones, with the lines to add if there are such")
  }

  @Test("a queue that is emptied is well, one that is old is a warning, one that only grows or is held a fault")
  func queues() {
    let idle = Self.status(waiting: 3, oldest: 5)
    #expect(Self.examine(idle, idle).map(\.result) == [.ok])
    let old = Self.status(waiting: 3, oldest: 700, stored: 3)
    #expect(Self.examine(old, old).map(\.result) == [.warning])
    let growing = Self.examine(old, Self.status(waiting: 9, oldest: 703, stored: 9))
    #expect(growing.map(\.result) == [.fault])
    #expect(growing[0].text == "9 rows not sent, the oldest for 12 min, and more come; last failure: answered 401")
    #expect(growing[0].advice == "`prismctl explain shop` tells what keeps them (order meta: network: no network)")
    let drained = Self.status(waiting: 9, oldest: 703, stored: 9, delivered: 1)
    #expect(Self.examine(old, drained).map(\.result) == [.warning])
    let held = Self.status(waiting: 1, state: "held")
    #expect(Self.examine(held, held).map(\.result) == [.fault])
  }

  @Test("a missing network is reported if rows wait for one, and only then")
  func network() {
    func told(_ waiting: Int, _ kind: JSONValue, _ words: String = "order meta: network: no network") -> Bool {
      let status = Self.status(waiting: waiting).object ?? []
      let now = JSONValue.object(status + [.init("network", ["kind": kind])])
      return Self.examine(now, now, explained: words).contains { $0.check == "network" && $0.result == .warning }
    }
    #expect(told(1, "none") && !told(0, "none") && !told(1, "unmetered"))
    #expect(!told(1, "none", "order meta: timer: it leaves in 3 s"), "a collector on this machine needs no network")
  }

  @Test("dead letters and a refused reload are reported with what to do")
  func others() {
    let dead = Self.examine(.null, Self.status(dead: 4))
    #expect(dead.map(\.result) == [.warning] && dead[0].advice?.contains("dead list --namespace shop") == true)
    let faulty: JSONValue = ["configFaults": ["a.yaml:3: url: is missing"], "namespaces": [:]]
    #expect(Self.examine(faulty, faulty)[0].result == .fault)
    #expect(Self.examine(faulty, faulty)[0].advice == "mend the files, then `prismctl reload`")
    let restart = "prismd.yaml:1: state: is /b, but prismd runs with /a; restart it for this change, or take it back"
    let moved: JSONValue = ["configFaults": [.string(restart)], "namespaces": [:]]
    #expect(Self.examine(moved, moved)[0].advice?.contains("systemctl restart prismd") == true)
    let remote: JSONValue = [
      "remote": ["url": "u", "lastFailed": ["time": "T", "reason": "older than 7"], "failuresInRow": 2, "cause": "c"],
      "namespaces": [:],
    ]
    let found = Self.examine(remote, remote).filter { $0.check == "remote configuration" }
    #expect(found.map(\.result) == [.warning, .warning] && found[0].text.contains("older than 7"))
    let spool: JSONValue = ["faults": ["the crash spool can't be used folder=/x"], "namespaces": [:]]
    let fault = Self.examine(spool, spool)[0]
    #expect(fault.result == .fault && fault.text.contains("folder=/x"))
  }

  @Test("changes of records that can't leave, and refused ones, are reported with what to do")
  func records() {
    func findings(_ table: JSONValue, state: String = "active", isExplained: Bool = false) -> [Finding] {
      var report = NamespaceReport(controlJSON: ["state": .string(state), "records": ["part": table]])
      report.circuit = "closed"
      var refused = RefusedRecordReport()
      (refused.table, refused.id, refused.message) = ("part", "p1", "no such price")
      return RecordCheck.findings("shop", report, isExplained: isExplained) { _ in [refused] }
    }
    #expect(findings(["waiting": 3, "isDeclared": true]).isEmpty, "they wait for their interval")
    let undeclared = findings(["waiting": 3, "isDeclared": false])
    #expect(undeclared.map(\.result) == [.warning] && undeclared[0].text.hasPrefix("3 changes of the table part"))
    #expect(findings(["waiting": 0, "isDeclared": false]).isEmpty)
    #expect(findings(["waiting": 1, "isDeclared": true], state: "held").map(\.result) == [.fault])
    #expect(
      findings(["inFlight": 1, "isDeclared": true], state: "held", isExplained: true).map(\.result) == [.warning])
    let refused = findings(["refused": 2, "isDeclared": true])
    #expect(refused.map(\.text) == ["the server refused a change of part/p1: no such price"])
    #expect(refused[0].advice?.contains("dead list --namespace shop") == true)
  }

  @Test("dead letters are listed with refused changes of records, each with the server's words")
  func deadTable() {
    var record = RefusedRecordReport()
    (record.namespace, record.table, record.id, record.change) = ("shop", "part", "p1", "update")
    (record.version, record.time, record.message, record.bytes) = (7, "2026-01-02T03:04:05.678Z", "no such price", 12)
    let lines = DeadTable([], [record], columns: nil).text.split(separator: "\n").map { String($0) }
    #expect(lines.count == 4 && lines[1].hasPrefix("-       shop             records part"))
    #expect(lines[1].hasSuffix("   12  2026-01-02T03:04:05Z"), "\(lines[1])")
    #expect(lines[2] == "  update of record p1, version 7; change the record to send it again")
    #expect(lines[3] == "  refused: no such price")
    #expect(DeadTable([], [], columns: nil).text == "no dead letters")
  }

  @Test(
    "a disk is judged by what is free, in bytes and in inodes",
    arguments: [
      (10 << 30, Int?.none, Finding.Result.ok), (100 << 20, .some(1000), .warning), (10 << 20, .none, .fault),
      (10 << 30, .some(3), .fault),
    ])
  func disk(free: Int, files: Int?, result: Finding.Result) {
    let finding = MachineCheck.disk("/state", freeBytes: free, totalBytes: 20 << 30, freeFiles: files)
    #expect(finding.result == result && (finding.advice != nil) == (result != .ok))
  }

  @Test(
    "a clock of the past is a fault, one that nothing keeps in time a warning",
    arguments: [
      (0, Bool?.some(true), Finding.Result.fault), (1_900_000_000, .some(false), .warning),
      (1_900_000_000, .some(true), .ok), (1_900_000_000, .none, .ok),
    ])
  func clock(seconds: Int, isKept: Bool?, result: Finding.Result) {
    #expect(MachineCheck.clock(unixSeconds: seconds, isSynchronised: isKept).result == result)
  }

  @Test(
    "a url's host and port",
    arguments: [
      ("https://a.example/x", "a.example", "443"), ("http://a.example", "a.example", "80"),
      ("https://a.example:8443/y", "a.example", "8443"), ("http://[::1]:9/z", "::1", "9"),
      ("http://[::1]", "::1", "80"),
    ])
  func addresses(url: String, host: String, port: String) throws {
    let found = try #require(ReachCheck.hostAndPort(url))
    #expect(found.host == host && found.port == port)
  }

  @Test("the table keeps to its columns, says each result as a word, and ends with the sum")
  func table() {
    let findings = [
      Finding("disk", .ok, "12G of 40G are free"),
      Finding(
        "url shop", .fault, "https://collector.example: Could not resolve host: collector.example and more words",
        advice: "look at the url's host name, and at the name servers (`resolvectl query HOST`)"),
    ]
    let lines = FindingTable(findings, Paint(isOn: false), columns: 60).text.split(separator: "\n").map { String($0) }
    #expect(lines[0] == "ok      disk: 12G of 40G are free")
    #expect(lines[1].hasPrefix("fault   url shop: https://collector.example:"))
    #expect(lines.allSatisfy { $0.count <= 60 })
    #expect(lines.contains { $0.hasPrefix("        → look at") })
    #expect(lines.last == "1 fault, 0 warnings")
  }

  @Test("a finding goes over the control socket and comes back as it was", arguments: Finding.Result.allCases)
  func crossing(result: Finding.Result) {
    let finding = Finding("url shop", result, "text \"quoted\"", advice: result == .ok ? nil : "do")
    #expect(Finding(controlJSON: finding.controlJSON) == finding)
  }
}
