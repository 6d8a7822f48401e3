import Foundation
import PrismClient
import PrismProtocol
import PrismTestSupport
import Synchronization
import Testing

/// Tables of every direction while the daemon and the collector are killed. `PRISM_E2E_KILLS=200` for the long form,
/// `PRISM_SEED=…` for the same changes and kills again.
@Suite struct RecordKillTests {
  private static let shop = """
    url: URL
    periodicTimerSecond: 1
    monitorList: [{type: order}]
    recordIntervalSecond: 1
    records:
      - {table: part}
      - {table: setting, direction: both}
      - {table: product, direction: down, scope: fleet}
    """
  private static let name = NamespaceName("shop")!
  private static let kills = Seed.number("PRISM_E2E_KILLS") ?? 8

  /// Changes that were answered, and whether more are to be made.
  private final class Course: Sendable {
    private let state = Mutex((changes: 0, isOver: false))
    var changes: Int { state.withLock { $0.changes } }
    var isOver: Bool { state.withLock { $0.isOver } }
    func note() { state.withLock { $0.changes += 1 } }
    func end() { state.withLock { $0.isOver = true } }
  }

  @Test("after kills of both at random points each table is the same on both sides, and its ledger balances")
  func bothSides() async throws {
    let seed = Seed.next("RecordKillTests, \(Self.kills) kills")
    try await withHarness(namespaces: ["shop": Self.shop]) { harness in
      try await harness.startCollector()
      try await harness.startDaemon()
      let course = Course()
      try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask { try await Self.changeHere(harness, course, SeededRandom(seed: seed &+ 1)) }
        group.addTask { try await Self.changeThere(harness, course, SeededRandom(seed: seed &+ 2)) }
        group.addTask { try await Self.killAtRandom(harness, course, SeededRandom(seed: seed &+ 3)) }
        try await group.waitForAll()
      }
      try await waitUntil("both sides are equal", otherwise: harness.daemonLog.suffix(2000).description) {
        try await Self.isQuiet(harness)
      }
      #expect(!harness.daemonLog.contains("is set aside"))
      print("RecordKillTests: \(course.changes) changes")
    }
  }

  // MARK: Changes

  /// A change whose answer is lost is made again: it leads to the same record.
  private static func changeHere(_ harness: Harness, _ course: Course, _ seeded: SeededRandom) async throws {
    var random = seeded
    let client = harness.client()
    while !course.isOver {
      let table = RecordTableName(random.pick(["part", "setting"]))!
      let id = RecordID("r\(random.next() % 8)")!
      let fields: JSONValue = ["n": .int(Int(random.next() % 1000))]
      let isDeletion = random.oneIn(4)
      while !course.isOver {
        do throws(ClientError) {
          if isDeletion {
            try await client.delete(id, in: table, of: name)
          } else {
            try await client.put(fields, as: id, in: table, of: name)
          }
          course.note()
          break
        } catch .connectionLost, .unreachable {
          try await Task.sleep(for: .milliseconds(10))
        } catch { throw error }
      }
    }
  }

  /// As a backend does, by the API.
  private static func changeThere(_ harness: Harness, _ course: Course, _ seeded: SeededRandom) async throws {
    var random = seeded
    while !course.isOver {
      let isOfFleet = random.oneIn(2)
      let place = isOfFleet ? "product/sku-\(random.next() % 8)" : "setting/r\(random.next() % 10)"
      let path = "\(place)\(isOfFleet ? "" : "?device=e2e-device")"
      let put = ["-X", "PUT", "-H", "Content-Type: application/json", "-d", #"{"n":\#(random.next() % 1000)}"#]
      let words = random.oneIn(4) ? ["-X", "DELETE"] : put
      while !course.isOver {
        let status = try await api(harness, path, words).output
        if status.hasPrefix("2") { break }
        guard ["000", "503"].contains(status) else { throw Failed("\(path) is answered \(status)") }
        try await Task.sleep(for: .milliseconds(10))
      }
      course.note()
    }
  }

  private static func api(_ harness: Harness, _ path: String, _ words: [String]) async throws -> Ran {
    try await Programs.run(
      "curl",
      ["-s", "-o", "/dev/null", "-w", "%{http_code}", "--unix-socket", harness.readerSocket] + words
        + ["http://collector/api/v1/records/shop/\(path)"])
  }

  private static func killAtRandom(_ harness: Harness, _ course: Course, _ seeded: SeededRandom) async throws {
    defer { course.end() }
    var random = seeded
    for _ in 0..<kills {
      let goal = course.changes + Int.random(in: 1...80, using: &random)
      try await waitUntil("records are changed") { course.changes >= goal }
      if random.oneIn(2) {
        try await harness.endDaemon(SIGKILL)
        try await harness.startDaemon()
      } else {
        try await harness.endCollector(SIGKILL)
        try await harness.startCollector()
      }
    }
  }

  // MARK: Both sides

  /// No change is on its way, every ledger balances, and both sides have the same records.
  private static func isQuiet(_ harness: Harness) async throws -> Bool {
    let tables = try await harness.status()["namespaces"]?["shop"]?["records"]?.object ?? []
    for table in tables {
      let parts = ["confirmed", "merged", "waiting", "inFlight", "refused", "corrupt"].map { table.value[$0]?.int ?? 0 }
      #expect(table.value["put"]?.int ?? 0 == parts.reduce(0, +), "\(table.key)")
      #expect(parts[4...].allSatisfy { $0 == 0 }, "\(table.key)")
      guard parts[2] + parts[3] == 0 else { return false }
    }
    guard tables.map(\.key).sorted() == ["part", "product", "setting"] else { return false }
    for table in ["part", "setting", "product"] {
      guard try await here(harness, table) == there(harness, table) else { return false }
    }
    return true
  }

  /// A record as both sides name it; numbers of the server, where it gave one.
  private static func here(_ harness: Harness, _ table: String) async throws -> [String] {
    try await harness.client().records(in: RecordTableName(table)!, of: name).map {
      "\($0["serverId"]?.string ?? "-") \($0["fields"]?.text ?? "-")"
    }.sorted()
  }

  private static func there(_ harness: Harness, _ table: String) async throws -> [String] {
    try await harness.query(
      """
      SELECT CASE WHEN is_named THEN id ELSE server_id END, fields FROM records WHERE namespace = 'shop' AND tab = '\(table)'
      """
    ).map { "\($0[0]) \($0[1])" }.sorted()
  }

  // MARK: Many at once

  @Test("a collector that is killed while many changes come has made whole thousands of them, and takes them again")
  func bulk() async throws {
    let seed = Seed.next("RecordKillTests, many changes")
    var random = SeededRandom(seed: seed)
    try await withHarness(namespaces: ["shop": Self.shop]) { harness in
      let (file, count) = ("\(harness.folder)/lines", 20_000)
      let lines = (0..<count).map { #"{"id":"sku-\#($0)","fields":{"n":\#($0)}}"# }.joined(separator: "\n")
      try lines.write(toFile: file, atomically: true, encoding: .utf8)
      let words = ["-X", "POST", "-H", "Content-Type: application/x-ndjson", "--data-binary", "@\(file)"]
      let stored = { try await harness.query("SELECT count(*) FROM records WHERE tab = 'product'")[0][0] }
      try await harness.startCollector()
      let goal = Int.random(in: 0...15, using: &random) * 1000
      async let answer = Self.api(harness, "product", words)
      try await waitUntil("some are stored") { Int(try await stored()) ?? 0 >= goal }
      try await harness.endCollector(SIGKILL)
      _ = try await answer
      let left = Int(try await stored()) ?? -1
      #expect(left % 1000 == 0 && left >= goal, "\(left) of \(count)")
      print("RecordKillTests: \(left) of \(count) changes were made before the kill")
      try await harness.startCollector()
      #expect(try await Self.api(harness, "product", words).output == "200")
      #expect(try await stored() == String(count))
    }
  }
}
