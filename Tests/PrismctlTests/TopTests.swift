import PrismControl
import PrismProtocol
import Testing

@testable import prismctl

@Suite("prismctl top")
struct TopTests {
  private static func status(_ names: [String], stored: Int, delivered: Int, circuit: String = "closed") -> StatusReport
  {
    let members = names.map { name -> JSONValue.Member in
      let queue: JSONValue = [
        "waiting": .int(stored - delivered), "claimed": 0, "dead": 2, "bytes": 1000, "oldestAgeSeconds": 75,
        "bytesSent": .int(delivered * 100), "ledger": ["stored": .int(stored), "delivered": .int(delivered)],
      ]
      let failure: JSONValue = ["time": "2026-01-01T00:00:00.000Z", "status": 503, "cause": "answered 503"]
      return .init(name, ["state": "active", "circuit": .string(circuit), "lastFailure": failure, "meta": queue])
    }
    return StatusReport(
      controlJSON: [
        "version": "1.2.3", "uptimeSeconds": 3700, "generation": 4, "storeBytes": 123_456,
        "memory": ["residentBytes": 12_000_000], "network": ["kind": "unmetered", "interface": "eth0"],
        "namespaces": .object(members),
      ])
  }

  private static func frame(
    _ history: TopHistory, columns: Int = 80, rows: Int = 24, colour: Bool = false, blocks: Bool = true,
    trouble: String? = nil, view: TopView = TopView()
  ) -> [String] {
    TopFrame(
      history, trouble: trouble, size: .init(columns: columns, rows: rows), paint: Paint(isOn: colour),
      hasBlocks: blocks, view: view, footer: "q quits"
    ).lines
  }

  private static func history(_ names: [String] = ["shop"], seconds: Int = 3, circuit: String = "closed") -> TopHistory
  {
    var history = TopHistory()
    for second in 0...seconds {
      history.add(
        status(names, stored: 1000 * second, delivered: 900 * second, circuit: circuit), now: Double(second) * 2)
    }
    return history
  }

  @Test("rates are what changed between two looks, by the time between them")
  func rates() {
    let rates = Self.history().rates["shop"]
    #expect(rates?.stored == 500 && rates?.delivered == 450 && rates?.sentBytes == 45_000)
    #expect(rates?.storedBefore == [500, 500, 500])
  }

  @Test("rings and triggers are shown: rows kept, overwritten and let go") func rings() {
    var history = TopHistory()
    let queue: JSONValue = ["keptBytes": 2048, "ledger": ["stored": 12, "kept": 5, "overwritten": 7]]
    let triggers: JSONValue = ["crash": ["fired": 2, "rows": 40, "overBudget": 1]]
    history.add(
      StatusReport(controlJSON: ["namespaces": ["shop": ["meta": queue, "triggers": triggers], "quiet": [:]]]), now: 0)
    let lines = Self.frame(history)
    #expect(lines.contains("shop: ring: 5 rows kept, 2.0k, 7 overwritten"), "\(lines)")
    #expect(
      lines.contains { $0.hasPrefix("shop: trigger crash: fired 2 times, 40 rows let go, 1 times over its budget") })
    #expect(!lines.contains { $0.hasPrefix("quiet: ring") })
  }

  @Test("a daemon that was restarted counts from 0 again, which is no negative rate")
  func restart() {
    var history = Self.history()
    history.add(Self.status(["shop"], stored: 5, delivered: 5), now: 8)
    #expect(history.rates["shop"]?.stored == 0 && history.rates["shop"]?.sentBytes == 0)
  }

  @Test("five minutes are kept of each namespace, and nothing of those that are gone")
  func bounds() {
    var history = Self.history(seconds: 400)
    #expect(history.rates["shop"]?.storedBefore.count == 300)
    history.add(Self.status([], stored: 0, delivered: 0), now: 900)
    #expect(history.rates.isEmpty)
  }

  @Test(
    "a frame is never higher or wider than the screen",
    arguments: [(80, 24), (40, 10), (200, 60), (10, 3), (1, 1)], [1, 5, 40])
  func fits(size: (columns: Int, rows: Int), namespaces: Int) {
    let history = Self.history((0..<namespaces).map { "namespace-\($0)" }, circuit: "open")
    let lines = Self.frame(history, columns: size.columns, rows: size.rows, trouble: "the daemon does not answer")
    #expect(lines.count <= size.rows)
    for line in lines { #expect(line.count <= size.columns, "\(line)") }
  }

  @Test("in 80 columns a namespace has its figures and the sparkline beside them")
  func row() throws {
    let row = try #require(Self.frame(Self.history()).first { $0.hasPrefix("shop") })
    #expect(row.split(separator: " ") == ["shop", "300", "2", "75s", "500", "450", "44k", "███"])
    #expect(row.count == 80)
  }

  @Test(
    "a narrow screen has fewer columns, each whole; a wide one has names whole",
    arguments: [(60, 6), (80, 7), (200, 7)])
  func columns(width: Int, titles: Int) throws {
    let name = String(repeating: "n", count: 64)
    let lines = Self.frame(Self.history(["shop", name]), columns: width)
    let header = try #require(lines.first { $0.hasPrefix("NAMESPACE") })
    #expect(header.prefix { $0 != "," }.split(separator: " ").prefix(7).count == titles, "\(header)")
    #expect(lines.contains { $0.hasPrefix(name + " ") } == (width == 200))
  }

  @Test("without colour nothing is lost: what is wrong is said in words")
  func colourless() {
    let lines = Self.frame(Self.history(circuit: "open"))
    #expect(lines.contains { $0.contains("shop: circuit open; last failure 2026-01-01T00:00:00.000Z: answered 503") })
    #expect(lines.allSatisfy { !$0.contains("\u{1B}") })
    #expect(Self.frame(Self.history(circuit: "open"), colour: true).contains { $0.contains("\u{1B}[33m") })
  }

  @Test("more namespaces than lines: the busiest are shown, and how many are not")
  func crowded() {
    let names = (0..<40).map { "n\($0)" }
    var history = Self.history(names)
    var busy = Self.status(names, stored: 3000, delivered: 2700)
    let busiest = Self.status(["n33"], stored: 9000, delivered: 2700).namespaces[0]
    busy.namespaces = NamedValues(busy.namespaces.map { $0.name == "n33" ? busiest : $0 })
    history.add(busy, now: 8)
    let lines = Self.frame(history)
    #expect(lines[4].hasPrefix("n33 "))
    #expect(lines.contains { $0.contains("more, quieter") })
  }

  @Test("`s` sorts by the next column, whose title has a mark; by a figure the largest is first")
  func sorted() throws {
    var history = Self.history(["a", "b", "c"])
    var next = Self.status(["a", "b", "c"], stored: 3000, delivered: 2700)
    let busy = Self.status(["b"], stored: 9000, delivered: 2700).namespaces[0]
    next.namespaces = NamedValues(next.namespaces.map { $0.name == "b" ? busy : $0 })
    history.add(next, now: 8)
    var view = TopView()
    func names() -> [Substring] { Self.frame(history, view: view).dropFirst(4).prefix(3).map { $0.prefix(1) } }
    #expect(names() == ["a", "b", "c"])
    view.take(Array("s".utf8), page: 10)
    #expect(names() == ["b", "a", "c"])
    #expect(Self.frame(history, view: view).contains { $0.hasPrefix("NAMESPACE") && $0.contains("WAITING↓") })
    for _ in TopView.Order.allCases { view.take(Array("s".utf8), page: 10) }
    #expect(view.order == nil && names() == ["a", "b", "c"])
  }

  @Test("`?` shows what each key does and each column means, on any screen, until the next key")
  func help() {
    var view = TopView()
    view.take(Array("?".utf8), page: 10)
    let lines = Self.frame(Self.history(), view: view)
    for word in ["s ", "/ ", "q ", "IN/S", "OUT/S", "SENT/S", "WAITING"] {
      #expect(lines.contains { $0.contains(word) }, "\(word)")
    }
    #expect(Self.frame(Self.history(), columns: 20, rows: 3, view: view).allSatisfy { $0.count <= 20 })
    view.take(Array("q".utf8), page: 10)
    #expect(!view.isHelping && !view.isOver)
  }

  @Test("a wide screen has the rates of up to five minutes")
  func wide() throws {
    let header = try #require(Self.frame(Self.history(), columns: 400).first { $0.hasPrefix("NAMESPACE") })
    #expect(header.hasSuffix("IN/S, 300 s"))
  }

  @Test("scrolled to the end the last namespace is shown, and a filter leaves those that it matches")
  func scrolled() {
    let history = Self.history((0..<40).map { "n\($0)" })
    var view = TopView()
    view.offset = 1000
    let lines = Self.frame(history, view: view)
    #expect(lines.contains { $0.hasPrefix("n39 ") } && lines.contains { $0.contains("above, 0 below") })
    view = TopView()
    view.take(Array("/n3\r".utf8), page: 10)
    let names = Self.frame(history, rows: 60, view: view).compactMap { $0.split(separator: " ").first }.filter {
      $0.hasPrefix("n")
    }
    #expect(names.contains("n3") && names.contains("n39") && !names.contains("n4"))
  }

  @Test("on 80 by 24 with failures below the busiest namespace is shown") func busiest() {
    let names = (0..<16).map { "a\($0)" } + ["zz"]
    var history = Self.history(names, circuit: "open")
    var busy = Self.status(names, stored: 3000, delivered: 2700, circuit: "open")
    let zz = Self.status(["zz"], stored: 9000, delivered: 2700, circuit: "open").namespaces[0]
    busy.namespaces = NamedValues(busy.namespaces.map { $0.name == "zz" ? zz : $0 })
    history.add(busy, now: 8)
    #expect(Self.frame(history)[4].hasPrefix("zz "))
  }

  @Test(
    "figures keep to four digits",
    arguments: [
      (0.0, "0"), (0.25, "0.3"), (7, "7"), (99.94, "99.9"), (1234, "1234"), (9999, "9999"), (12_345, "12.3k"),
      (1_234_567, "1234.6k"), (98_765_432, "98.8M"),
    ])
  func figures(value: Double, text: String) { #expect(TopFrame.figure(value) == text) }

  @Test("a sparkline's newest is at the right end, its highest fills its cell, and a terminal without blocks has ASCII")
  func sparkline() {
    #expect(Sparkline([0, 1, 4, 8], columns: 6, hasBlocks: true).text == "   ▂▅█")
    #expect(Sparkline([0, 1, 4, 8], columns: 3, hasBlocks: false).text == "_+#")
    #expect(Sparkline([], columns: 2, hasBlocks: true).text == "  ")
  }
}
