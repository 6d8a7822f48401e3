import PrismControl
import PrismProtocol
import Testing

@testable import prismctl

@Suite("prismctl status, dead list and trace, for people")
struct StatusTests {
  private static let longest = String(repeating: "n", count: 64)
  private static let huge = 123_456_789

  private static func status(_ names: [String], expired: Int = 0) -> JSONValue {
    let queue: JSONValue = [
      "waiting": .int(huge), "claimed": .int(huge), "dead": 54_321, "bytes": 1_099_511_627_776,
      "oldestAgeSeconds": 8_000_000,
      "ledger": ["delivered": .int(huge), "expired": .int(expired)],
    ]
    let namespace: JSONValue = [
      "state": "retired", "circuit": "closed", "lastSuccess": "2026-11-21T14:02:16.789Z", "nextTryInSeconds": 604_800,
      "lastFailure": [
        "time": "2026-11-21T14:03:00.000Z", "cause": "connect: no route to a host of a rather long name",
      ],
      "flow": ["usedBytes": 1_048_575_000, "allowedBytes": 104_857_600_000], "meta": queue, "payload": queue,
    ]
    return [
      "version": "1.2.3", "uptimeSeconds": 3700, "generation": 4, "storeBytes": 123_456,
      "namespaces": .object(names.map { .init($0, namespace) }), "configFaults": ["a.yaml:3: url: is missing"],
    ]
  }

  private static func lines(_ status: JSONValue, columns: Int?) -> [String] {
    StatusTable(StatusReport(controlJSON: status), columns: columns, paint: Paint(isOn: false)).text.split(
      separator: "\n"
    ).map { String($0) }
  }

  @Test("on a terminal nothing is wider than it, with any names and figures", arguments: [80, 100, 200])
  func fits(columns: Int) {
    for line in Self.lines(Self.status(["shop", Self.longest]), columns: columns) {
      #expect(line.count <= columns, "\(line)")
    }
  }

  @Test("a column's figures end where its title does")
  func aligned() throws {
    let lines = Self.lines(Self.status(["shop"]), columns: 80)
    let header = try #require(lines.first { $0.hasPrefix("NAMESPACE") && $0.contains("WAITING") })
    let row = try #require(lines.first { $0.hasPrefix("shop ") })
    for (title, figure) in [("WAITING", "123456789"), ("DEAD", "54321"), ("BYTES", "1.0T"), ("OLDEST", "93d")] {
      let (end, stop) = (try #require(header.firstRange(of: title)), try #require(row.firstRange(of: figure)))
      #expect(
        header.distance(from: header.startIndex, to: end.upperBound)
          == row.distance(from: row.startIndex, to: stop.upperBound), "\(title)")
    }
  }

  @Test("in a pipe names are whole and a fault is one line, for grep")
  func piped() {
    let lines = Self.lines(Self.status([Self.longest]), columns: nil)
    #expect(lines.count { $0.hasPrefix(Self.longest + " ") } == 3)
    #expect(lines.contains { $0.hasPrefix("\(Self.longest): ") && $0.hasSuffix("next try in 7 days") })
  }

  @Test("state, circuit, last success, next try and flow have a row, and what was lost its line")
  func delivery() {
    let lines = Self.lines(Self.status(["shop"], expired: 3), columns: 80)
    let row = ["shop", "retired", "closed", "2026-11-21T14:02:16Z", "in", "7d", "1000M", "of", "98G"]
    #expect(lines.contains { $0.split(separator: " ").map { String($0) } == row }, "\(lines)")
    #expect(lines.contains("shop: meta rows not delivered: 3 expired"))
    #expect(lines.contains("configuration: a.yaml:3: url: is missing"))
    #expect(lines.contains("dead letters: 108642 of shop; `prismctl dead list` tells why"), "\(lines)")
  }

  @Test("what is wrong comes first, quiet namespaces are folded, and --all shows them with their whole ledger")
  func folded() throws {
    var status = StatusReport(controlJSON: Self.status(["busy"]))
    var quiet = NamespaceReport()
    (quiet.state, quiet.circuit, quiet.meta.ledger.stored, quiet.meta.ledger[.delivered]) = ("active", "closed", 9, 7)
    quiet.meta.ledger[.expired] = 2
    status.namespaces = NamedValues(Array(status.namespaces) + (0..<15).map { .init("quiet-\($0)", quiet) })
    func lines(_ columns: Int?, _ isWhole: Bool) -> [String] {
      StatusTable(status, columns: columns, isWhole: isWhole, paint: Paint(isOn: false)).text.split(separator: "\n")
        .map { String($0) }
    }
    let folded = lines(80, false)
    #expect(folded.count <= 17 && folded[2] == "configuration: a.yaml:3: url: is missing", "\(folded)")
    #expect(folded.contains("15 namespaces with nothing to tell; --all shows all"))
    #expect(folded.contains { $0.hasPrefix("busy ") } && !folded.contains { $0.hasPrefix("quiet-") })
    let whole = lines(80, true)
    #expect(whole.contains("quiet-3: meta rows: 9 stored = 7 delivered + 2 expired"))
    #expect(lines(nil, false).contains { $0.hasPrefix("quiet-14 ") }, "a pipe gets all")
  }

  @Test("a dead letter has its row, whose it is and what the collector said; an empty list is a sentence")
  func dead() {
    let letter: JSONValue = [
      "id": 1_234_567, "namespace": .string(Self.longest), "kind": "payload", "type": .string(Self.longest),
      "reportId": .string(Self.longest), "status": 422, "message": .string("no JSON\u{1B}[31m " + Self.longest),
      "time": "2026-11-21T14:02:16.789Z", "attempts": 3, "bytes": 1000,
    ]
    let lines = DeadTable([DeadLetterReport(controlJSON: letter.printable())], columns: 80).text.split(separator: "\n")
    #expect(lines.allSatisfy { $0.count <= 80 && !$0.contains("\u{1B}") }, "\(lines)")
    #expect(lines.count >= 4 && lines[0].hasPrefix("ID") && lines.contains { $0.contains("answered 422: no JSON") })
    #expect(DeadTable([], columns: 80).text == "no dead letters")
  }

  @Test("a journey tells what happened in the order of time")
  func journey() {
    let rows: [JSONValue] = [
      [
        "namespace": "shop", "kind": "meta", "state": "delivered", "packetId": "P", "packetTime": "T1",
        "deliveredTime": "T2", "attempts": 2, "duplicate": true,
      ],
      [
        "namespace": "shop", "kind": "payload", "state": "claimed", "createdTime": "T0", "packetId": "Q",
        "packetTime": "T1", "lastFailure": ["time": "T3", "cause": "answered 503"],
      ],
      ["namespace": "bar", "kind": "meta", "state": "dropped", "userId": 7, "cause": "expired", "time": "T4"],
    ]
    #expect(
      JourneyText(rows.map { TraceReport(controlJSON: $0) }, columns: 80).text == """
        shop meta: delivered
          T1 claimed for packet P
          T2 delivered, with a receipt, after 2 attempts; the collector had it already
        shop payload: claimed
          T0 created
          T1 claimed for packet Q
          T3 the namespace's last try failed: answered 503
          not delivered yet: `prismctl explain shop` tells what keeps it
        bar meta: dropped, of user 7
          T4 expired: it was held for longer than `expirationDay`
        """)
  }

  @Test(
    "lines are broken between words, and what follows is indented by more",
    arguments: [
      ("short", 80, ["short"]), ("one two three", 8, ["one two", "  three"]),
      ("  one two three", 9, ["  one two", "    three"]),
      ("averyveryverylongword x", 8, ["averyveryverylongword", "  x"]),
    ])
  func wrapping(text: String, columns: Int, lines: [String]) { #expect(text.wrapped(columns) == lines) }
}
