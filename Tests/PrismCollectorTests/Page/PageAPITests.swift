import Foundation
import PrismBase
import PrismHTTP
import PrismProtocol
import PrismTestSupport
import Synchronization
import Testing

@testable import PrismCollector

@Suite("The API of the page")
struct PageAPITests {
  @Test(
    "an error is problem details",
    arguments: [
      ("/nowhere", "", 404), ("/reports", "limit=0", 400), ("/reports", "limit=x", 400), ("/reports", "typ=a", 400),
      ("/reports", "meta=1 2", 400), ("/reports/x", "", 404), ("/reports/99", "", 404),
      ("/reports/99/payload", "", 404),
      ("/histogram", "by=what", 400), ("/histogram", "buckets=401", 400), ("/histogram", "since=2&until=1", 400),
      ("/aggregate", "", 400), ("/aggregate", "key=ms > 3", 400), ("/devices", "sort=size", 400), ("/device", "", 400),
      ("/device", "id=none", 404), ("/export", "format=xls", 400), ("/crashes/abc", "", 404),
    ] as [(String, String, Int)])
  func problems(path: String, query: String, status: Int) async throws {
    let rig = try PageRig()
    let pairs = query.split(separator: "&").map { pair in
      let parts = pair.split(separator: "=", maxSplits: 1)
      return (name: String(parts[0]), value: String(parts[1]))
    }
    let answer = await rig.ask(path, pairs)
    #expect(answer.status == status)
    #expect(answer.headers.contains { $0 == ("Content-Type", "application/problem+json") })
    let problem = try JSONValue(parsing: answer.body)
    #expect(problem["status"] == .int(status) && problem["detail"]?.string?.isEmpty == false)
    #expect(problem["type"] == "about:blank" && problem["title"]?.string?.isEmpty == false)
  }

  @Test("reports come newest first, page by page, each once")
  func pages() async throws {
    let rig = try PageRig()
    _ = try await rig.collector.store.take(StoreRig.packet(Array(1...25)))
    var (ids, before) = ([Int](), "")
    repeat {
      let page = try await rig.json("/reports", [("limit", "10"), ("before", before)])
      ids += try #require(page["reports"]?.array).compactMap { $0["id"]?.int }
      before = page["next"]?.int.map { String($0) } ?? ""
    } while !before.isEmpty
    #expect(ids == Array((1...25).reversed()))
  }

  @Test("reports with large metas come in pages of fewer, and no report is left out")
  func largeMetas() async throws {
    let rig = try PageRig()
    for part in 0..<6 {
      let packet = try StoreRig.packet(
        Array(part * 100..<(part + 1) * 100), reportPrefix: String(repeating: "x", count: 9000))
      _ = try await rig.collector.store.take(packet)
    }
    var (ids, before, pages) = ([Int](), "", 0)
    repeat {
      let page = try await rig.json("/reports", [("limit", "1000"), ("before", before)])
      ids += try #require(page["reports"]?.array).compactMap { $0["id"]?.int }
      before = page["next"]?.int.map { String($0) } ?? ""
      pages += 1
    } while !before.isEmpty
    #expect(ids == Array((1...600).reversed()) && pages > 1)
  }

  @Test("a payload is a file that no browser shows, of any content")
  func payload() async throws {
    let rig = try PageRig()
    _ = try await rig.collector.store.take(StoreRig.packet([1], payload: Array("<script>".utf8)))
    let answer = await rig.ask("/reports/1/payload")
    #expect(answer.body == Array("<script>".utf8))
    for header in [
      ("Content-Type", "application/octet-stream"), ("X-Content-Type-Options", "nosniff"),
      ("Content-Disposition", "attachment; filename=\"report-1.bin\""),
    ] { #expect(answer.headers.contains { $0 == header }) }
    #expect(answer.headers.contains { $0.name == "Content-Security-Policy" && $0.value.contains("sandbox") })
  }

  @Test("an export has every report once; a longer one names where it goes on")
  func export() async throws {
    let rig = try PageRig()
    _ = try await rig.collector.store.take(StoreRig.packet(Array(1...1500)))
    let whole = await rig.ask("/export")
    #expect(whole.wholeBody.count { $0 == UInt8(ascii: "\n") } == 1500)
    let part = await rig.ask("/export", [("limit", "1200"), ("format", "csv")])
    #expect(part.wholeBody.count { $0 == UInt8(ascii: "\n") } == 1201)
    let next = try #require(part.headers.first { $0.name == "Prism-Next" }?.value)
    let rest = await rig.ask("/export", [("before", next)])
    #expect(rest.wholeBody.count { $0 == UInt8(ascii: "\n") } == 300)
    #expect(!rest.headers.contains { $0.name == "Prism-Next" })
  }

  @Test("CSV has a column for each field, with numbers as they were written")
  func columns() async throws {
    let rig = try PageRig()
    _ = try await rig.collector.store.take(
      StoreRig.packet([1, 2, 3]) { number in
        switch number {
        case 1: #""ms":1.50,"net":{"code":-7,"why":"=1+1"},"a.b":true"#
        case 2: #""net":"off","list":[1,{"x":2}],"void":null,"empty":{}"#
        default: #""deep":{"1":{"2":{"3":{"4":{"5":{"6":{"7":{"8":9}}}}}}}},"big":1e400"#
        }
      })
    let answer = await rig.ask("/export", [("format", "csv")])
    let lines = String(decoding: answer.wholeBody, as: UTF8.self).components(separatedBy: "\r\n")
    let names = [
      "MONITOR_TYPE", "REPORT_ID", "\"\"a.b\"\"", "big", "deep.1.2.3.4.5.6.7", "empty", "list", "ms", "n", "net",
      "net.code",
      "net.why", "void",
    ]
    let found = lines[0].components(separatedBy: ",").dropFirst(11).filter { !$0.contains("CREATE_TIME") }
    #expect(found == names.map { "\"meta.\($0)\"" }, "\(lines[0])")
    #expect(lines[3].hasSuffix(#""t","r1",true,,,,,1.50,1,,-7,"'=1+1","#), "\(lines)")
    #expect(lines[2].hasSuffix(#""t","r2",,,,"{}","[1,{""x"":2}]",,2,"off",,,"#), "\(lines)")
    #expect(lines[1].hasSuffix(#""t","r3",,1e400,"{""8"":9}",,,,3,,,,"#), "\(lines)")
    let many = (0...ExportLines.columnsMax).map { #""f\#($0)":1"# }.joined(separator: ",")
    _ = try await rig.collector.store.take(StoreRig.packet([4], type: "wide") { _ in many })
    let refused = await rig.ask("/export", [("format", "csv"), ("type", "wide")])
    #expect(refused.status == 400 && String(decoding: refused.body, as: UTF8.self).contains("choose a type, or ndjson"))
    #expect(await rig.ask("/export", [("format", "csv"), ("type", "t")]).status == 200)
    #expect(await rig.ask("/export", [("type", "wide")]).status == 200)
  }

  @Test("exports that are not read are bounded, and hold no memory") func unreadExports() async throws {
    let rig = try PageRig()
    _ = try await rig.collector.store.take(StoreRig.packet(Array(1...1500)))
    var held: [HTTPResponse] = []
    for _ in 0..<Exports.openMax { held.append(await rig.ask("/export")) }
    #expect(held.allSatisfy { $0.status == 200 && $0.body.isEmpty && ($0.stream?.byteCount ?? 0) > 256 * 1024 })
    #expect(await rig.ask("/export").status == 503)
    held.removeLast()
    #expect(await rig.ask("/export").status == 200)
  }

  @Test("an export that takes long ends in time, and the next one goes on behind it")
  func exportInTime() async throws {
    let rig = try PageRig(time: HurriedTime())
    for part in 0..<5 {
      _ = try await rig.collector.store.take(StoreRig.packet(Array(part * 1000..<(part + 1) * 1000)))
    }
    var (ids, parts, before) = ([Substring](), 0, "")
    repeat {
      let answer = await rig.ask("/export", [("before", before), ("format", "csv")])
      ids += String(decoding: answer.wholeBody, as: UTF8.self).split(separator: "\r\n").dropFirst().compactMap {
        $0.split(separator: ",").first
      }
      before = answer.headers.first { $0.name == "Prism-Next" }?.value ?? ""
      parts += 1
    } while !before.isEmpty
    #expect(ids.map { Int($0) } == (1...5000).reversed().map { $0 })
    #expect(parts > 1, "its time was up before its end")
  }

  @Test(
    "a table program takes no text of a report for a formula",
    arguments: [
      ("=1+1", "\"'=1+1\""), ("+1", "\"'+1\""), ("-1", "\"'-1\""), ("@SUM(A1)", "\"'@SUM(A1)\""), ("\t=1", "\"'\t=1\""),
      ("\r=1", "\"'\r=1\""), ("a=1", "\"a=1\""), ("say \"hi\"", "\"say \"\"hi\"\"\""), ("a,b\nc", "\"a,b\nc\""),
      ("", "\"\""),
    ])
  func formulas(text: String, field: String) { #expect(ExportLines.quoted(text) == field) }

  @Test("the live tail sends reports that came after the last one, each once, on one line")
  func tail() async throws {
    let rig = try PageRig()
    _ = try await rig.collector.store.take(StoreRig.packet([1, 2, 3]))
    let answer = await rig.ask("/tail", [("after", "1")])
    let text = String(decoding: answer.body, as: UTF8.self)
    #expect(answer.headers.contains { $0 == ("Content-Type", "text/event-stream") })
    #expect(
      text.matches(of: /id: (\d+)\nevent: report\ndata: \{[^\n]*\}\n\n/).map { String($0.output.1) } == ["2", "3"])
    _ = try await rig.collector.store.take(StoreRig.packet(Array(4...100)))
    rig.rig.time.advance(by: TailPolls.interval)
    let many = String(decoding: await rig.ask("/tail", [("after", "3")]).body, as: UTF8.self)
    #expect(many.contains("event: cut") && many.contains("id: 100\n") && !many.contains("id: 4\n"))
    rig.collector.access.page.tailing.close()
    #expect(await rig.ask("/tail").status == 503)
  }

  @Test("the rows of a packet that was receipted do not wait any more")
  func carried() throws {
    let ledger = try #require(DeviceLedger("epoch=e;stored=9;delivered=5;expired=1;carried=3"))
    #expect(ledger.waiting == 0 && ledger.difference == nil && ledger.json["carried"] == nil)
    #expect(DeviceLedger("epoch=e;stored=9;delivered=5;carried=1")?.waiting == 3)
  }

  @Test("changes of records that the device merged are not lost, and its other losses are")
  func merged() throws {
    var stream = DeviceStream(
      device: "d", namespace: "shop", kind: "records", packets: 1, receivedTime: 1,
      ledger: "epoch=e;stored=9;delivered=2;expired=1;removed=4;carried=2")
    let account = try #require(stream.account)
    #expect(account.lost == 1 && account.waiting == 0 && account.difference == nil)
    #expect(account.json["merged"] == 4 && account.json["removed"] == 0)
    stream.kind = "meta"
    #expect(stream.account?.lost == 5 && stream.account?.json["merged"] == nil)
  }

  @Test("a device's accounts are shown one by one, with what does not balance")
  func accounts() async throws {
    let rig = try PageRig()
    _ = try await rig.collector.store.take(
      StoreRig.packet(
        [1, 2], device: "a", ledger: "epoch=e;stored=9;delivered=5;expired=1;evicted=0;cleared=0;dead=0;removed=0"))
    _ = try await rig.collector.store.take(
      StoreRig.packet(
        [1], device: "b", ledger: "epoch=e;stored=2;delivered=1;expired=4;evicted=0;cleared=0;dead=0;removed=0"))
    let missing = try #require(try await rig.json("/device", [("id", "a")])["streams"]?.array?.first)
    #expect(missing["ledger"]?["waiting"] == 1 && missing["ledger"]?["expired"] == 1 && missing["reportsHere"] == 2)
    #expect(missing["difference"]?.string?.hasPrefix("3 of 5 reports") == true)
    let wrong = try #require(try await rig.json("/device", [("id", "b")])["streams"]?.array?.first)
    #expect(wrong["difference"]?.string?.contains("3 reports more than were stored") == true)
    let fleet = try await rig.json("/fleet")
    #expect(fleet["devices"]?["total"] == 2 && fleet["devices"]?["differences"] == 1)
    #expect(fleet["ledger"]?["expired"] == 5 && fleet["ledger"]?["waiting"] == 1)
    #expect(fleet["startTime"]?.int.map { Int64($0) } == rig.rig.time.unixMilliseconds)
    let list = try await rig.json("/devices", [("sort", "lost"), ("limit", "1")])
    #expect(
      list["devices"]?.array?.first?["device"] == "b" && list["next"]?.string?.hasSuffix(":b") == true
        && list["total"] == 2)
  }

  @Test("percentiles are the numbers of the nearest rank")
  func percentiles() {
    let summary = NumberSummary(NumberCounts((1...100).map { Double($0) }.shuffled()))
    #expect(summary.median == 50 && summary.percentile95 == 95 && summary.maximum == 100 && summary.minimum == 1)
    #expect(summary.average == 50.5 && NumberSummary(NumberCounts([7])).percentile95 == 7)
    let large = NumberSummary(NumberCounts([1.5e308, 1.5e308, 1.5e308]))
    #expect(large.average == 1.5e308 && large.json["avg"] != .null, "their sum is more than a number holds")
  }

  @Test("past the bound of a gate without turns a question gets 503")
  func bound() async throws {
    let gate = ReadGate()
    func nest(_ depth: Int) async throws(CollectorRefusal) -> Int {
      try await gate.run { () throws(CollectorRefusal) in depth == 0 ? 1 : try await nest(depth - 1) }
    }
    #expect(try await nest(ReadGate.questionsMax - 1) == 1)
    await #expect(throws: CollectorRefusal.self) { try await nest(ReadGate.questionsMax) }
    #expect(try await nest(1) == 1)
  }

  @Test("questions past the bound wait for their turn, and each has one")
  func turns() async throws {
    final class Counts: Sendable {
      let running = Mutex(0)
      let order = Mutex<[Int]>([])
    }
    let (gate, counts) = (ReadGate(countMax: 2), Counts())
    await withTaskGroup { group in
      for number in 0..<20 {
        group.addTask {
          try? await gate.inTurn {
            let count = counts.running.withLock {
              $0 += 1
              return $0
            }
            #expect(count <= 2)
            for _ in 0..<20 { await Task.yield() }
            counts.order.withLock { $0.append(number) }
            counts.running.withLock { $0 -= 1 }
          }
        }
      }
    }
    #expect(counts.order.withLock { $0.sorted() } == Array(0..<20))
  }

  @Test("while all turns are taken, health, metrics, the session and a stranger are answered, and a question waits")
  func withoutTurn() async throws {
    let rig = try PageRig()
    let reading = rig.collector.access.page.reading
    var places: [ReadGate.Place] = []
    while let place = try? reading.take() { places.append(place) }
    let token = [(name: "authorization", value: "Bearer viewer-token-of-tests")]
    for path in ["/healthz", "/readyz", "/metrics", "/", "/api/v1/session"] {
      #expect(await rig.answer(PageRig.request(path, headers: token)).status == 200, "\(path)")
    }
    #expect(await rig.answer(PageRig.request("/api/v1/fleet")).status == 401)
    let (answers, isOver) = AsyncStream.makeStream(of: Int.self)
    for path in ["/api/v1/fleet", "/reports"] {
      Task { isOver.yield(await rig.answer(PageRig.request(path, headers: token)).status) }
    }
    while reading.waitingCount < 2 { await Task.yield() }
    places = []
    #expect(await answers.prefix(2).reduce(into: []) { $0.append($1) } == [200, 200])
  }

  @Test("the question that came first has the next turn")
  func order() async throws {
    let gate = ReadGate(countMax: 1)
    var place: ReadGate.Place? = try gate.take()
    let (turns, turn) = AsyncStream.makeStream(of: Int.self)
    for number in 0..<5 {
      Task { try await gate.inTurn { _ = turn.yield(number) } }
      while gate.waitingCount <= number { await Task.yield() }
    }
    withExtendedLifetime(place) {}
    place = nil
    #expect(await turns.prefix(5).reduce(into: []) { $0.append($1) } == Array(0..<5))
  }

  @Test("questions that wait for their turn are refused once the collector stops")
  func stopping() async throws {
    let rig = try PageRig()
    let reading = rig.collector.access.page.reading
    var places: [ReadGate.Place] = []
    while let place = try? reading.take() { places.append(place) }
    let token = [(name: "authorization", value: "Bearer viewer-token-of-tests")]
    let answers = ["/api/v1/fleet", "/reports"].map { path in
      Task { await rig.answer(PageRig.request(path, headers: token)).status }
    }
    while reading.waitingCount < 2 { await Task.yield() }
    reading.close()
    places = []
    for answer in answers { #expect(await answer.value == 503) }
  }
}

/// Each look at the clock takes a second.
private final class HurriedTime: TimeSource {
  private let seconds = Mutex<Int64>(0)
  private let base = ManualTime()

  var unixMilliseconds: Int64 { base.unixMilliseconds }
  var uptime: Duration {
    seconds.withLock { seconds in
      seconds += 1
      return .seconds(seconds)
    }
  }
  func sleep(until deadline: Duration) async throws { try await base.sleep(until: deadline) }
}
