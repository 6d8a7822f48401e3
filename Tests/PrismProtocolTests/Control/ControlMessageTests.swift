import PrismControl
import PrismProtocol
import Testing

@Suite("Messages of the control protocol")
struct ControlMessageTests {
  private static let failure: JSONValue = [
    "time": "2026-11-21T10:20:30.456Z", "status": 503, "code": .null, "cause": "answered 503",
  ]
  private static let queue: JSONValue = [
    "waiting": 1, "claimed": 2, "dead": 3, "bytes": 4, "keptBytes": 6, "memoryRows": 1,
    "memoryBytes": 2, "memoryLost": 3, "setBack": 7, "oldestAgeSeconds": 5,
    "ledger": [
      "stored": 26, "waiting": 1, "claimed": 2, "delivered": 3, "expired": 4, "evicted": 5, "cleared": 1, "dead": 3,
      "removed": 1, "corrupt": 1, "kept": 3, "overwritten": 2,
    ], "packets": ["accepted": 7, "refused": 8], "bytesRaw": 9, "bytesSent": 10,
  ]
  private static let namespace: JSONValue = [
    "state": "held", "circuit": "open", "lastSuccess": .null, "lastFailure": failure, "nextTryInSeconds": .null,
    "flow": ["usedBytes": 1, "allowedBytes": 2, "windowEndsInSeconds": 3], "isPlain": true,
    "isFileGone": false, "sampled": 4, "collapsed": 5, "forgottenIDs": 6, "forgottenGroups": 7,
    "lastExpiry": .null,
    "triggers": ["crash": ["fired": 1, "rows": 2, "overBudget": 3, "tooSoon": 4, "declined": 5]], "meta": queue,
    "payload": queue,
    "sessions": ["apps": 1, "sessions": 2, "crashes": 3, "leftOut": 4], "store": .null,
    "records": [
      "printer": [
        "records": 1, "put": 27, "confirmed": 2, "merged": 3, "waiting": 4, "inFlight": 5, "refused": 6, "corrupt": 7,
        "isDeclared": true, "ageSeconds": 5, "keptLocal": 1, "keptRemote": 2, "kept": 3,
        "fault": "f",
      ]
    ],
  ]
  private static let remote: JSONValue = [
    "url": "https://h", "state": "resting", "updateTime": 7, "version": .null,
    "validUntil": "2026-11-22T10:20:30.456Z", "isStale": false, "lastApplied": ["number": 7, "time": "T"],
    "lastFailed": ["number": .null, "time": "T", "reason": "r"], "failuresInRow": 1, "cause": "c",
    "nextAskInSeconds": 9, "namespaces": ["shop"], "probation": ["shop": ["triedSeconds": 60]], "takenBack": ["pay"],
  ]
  private static let status: JSONValue = [
    "version": "1", "nextStep": "run it", "uptimeSeconds": 2, "generation": 3, "configFaults": ["f"], "faults": ["g"],
    "network": ["kind": "metered", "interface": .null], "memory": ["residentBytes": 1, "virtualBytes": 2],
    "remote": remote, "storeBytes": 4,
    "store": [
      "state": "working", "since": "T", "takesReports": true, "cause": .null, "faults": 1, "setAside": 2,
      "salvagedRows": 3, "lostRows": 4, "isNews": false, "leftBehind": ["prism.db.corrupt-1"],
      "awaited": ["shop": ["meta": 5]],
    ], "refused": ["unknown_type": 1], "repeated": 3, "keys": ["main": ["blocks": 1, "blocksMax": 2]],
    "namespaces": ["pay": namespace, "shop": namespace],
  ]
  private static let dead: JSONValue = [
    "id": 7, "namespace": "shop", "kind": "meta", "type": "order", "reportId": "o-1", "packetId": "p", "status": 400,
    "message": "no", "time": "T", "attempts": 1, "bytes": 250, "userId": 1000,
  ]
  private static let tail: JSONValue = [
    "time": "T", "outcome": "refused", "code": "unknown_type", "namespace": "shop", "type": .null, "reportId": .null,
    "metaBytes": 250, "payloadBytes": .null, "foreign": .null, "peer": .null,
  ]
  private static let trace: JSONValue = [
    "namespace": "shop", "kind": "meta", "userId": 1000, "state": "claimed", "createdTime": "T0",
    "packetId": "p", "packetTime": "T1", "claimedTime": "T2", "lastFailure": failure,
  ]

  private func expectSame<Message: ControlMessage>(_ type: Message.Type, _ json: JSONValue) {
    #expect(type.init(controlJSON: json).controlJSON.text == json.text)
  }

  @Test("each is written as it was read: every member, in its order, absent and null apart")
  func roundTrip() {
    expectSame(StatusReport.self, Self.status)
    expectSame(DeadLetterReport.self, Self.dead)
    expectSame(TailReport.self, Self.tail)
    expectSame(TraceReport.self, Self.trace)
    expectSame(Finding.self, ["check": "c", "result": "warning", "text": "t", "advice": .null])
  }

  @Test("a member of an answer is read as it was written")
  func members() throws {
    let dead = DeadLetterReport(controlJSON: Self.dead)
    let line = AnswerLine(.object([Answers.dead([dead]), Answers.removed(7), Answers.done(true)]))
    #expect(line[Answers.dead] == [dead] && line[Answers.removed] == 7 && line[Answers.done] == true)
    #expect(line[Answers.status] == nil && line.json["done"] == true)
  }

  @Test("what a newer program says more is passed over, and what is missing or of another kind has its default")
  func otherVersions() {
    let odd: JSONValue = [
      "version": 7, "later": ["x": 1], "generation": "three", "configFaults": [1, "f"], "store": [], "remote": .null,
      "namespaces": ["shop": ["state": "later", "meta": 5], "pay": "none"],
    ]
    let report = StatusReport(controlJSON: odd)
    #expect(report.version == "" && report.generation == 0 && report.configFaults == ["f"])
    #expect(report.store == StoreReport() && report.remote == nil)
    #expect(report.namespaces["shop"]?.state == "later" && report.namespaces["shop"]?.meta == QueueReport())
    #expect(Finding(controlJSON: ["check": "c", "result": "new"]).result == .skipped)
    #expect(AnswerLine("no object")[Answers.done] == nil)
  }

  @Test("an error has the daemon's words and exit code, or their defaults")
  func errors() {
    let line = AnswerLine(["error": ["message": "no", "exitCode": 69], "done": true])
    #expect(line[Answers.error]?.message == "no" && line[Answers.error]?.exitCode == 69)
    #expect(AnswerLine(["error": "?"])[Answers.error]?.exitCode == 1)
  }

  @Test("sums over both kinds, and the failure that still holds")
  func sums() {
    var namespace = NamespaceReport(controlJSON: Self.namespace)
    #expect(namespace.unsentRows == 6 && namespace.deadRows == 6 && namespace.storedRows == 52)
    #expect(namespace.deliveredRows == 6 && namespace.presentFailure?.cause == "answered 503")
    namespace.lastSuccess = "2026-11-21T10:20:31.000Z"
    #expect(namespace.presentFailure == nil)
    namespace.lastFailure?.time = "2026-11-21T10:20:31.000Z"
    #expect(namespace.presentFailure?.cause == "answered 503", "an answer of the same moment does not end it")
  }
}
