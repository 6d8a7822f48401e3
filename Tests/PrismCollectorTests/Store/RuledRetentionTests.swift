import PrismBase
import PrismConfig
import PrismProtocol
import PrismSQL
import PrismSQLite
import PrismTestSupport
import Testing

@testable import PrismCollector

/// Which reports go by a rule of `retention`, and when.
@Suite("Retention by namespace and type", .timeLimit(.minutes(3)))
struct RuledRetentionTests {
  private static let day = Duration.seconds(86_400)

  private static func rule(_ namespace: String, _ type: String, days: Int) -> CollectorConfiguration.RetentionRule {
    .init(namespace: namespace, type: type, days: days)
  }

  private static func maintain(_ rig: StoreRig, _ store: SQLitePacketStore) async throws {
    while try await store.maintain() { rig.time.advance(by: .milliseconds(1)) }
  }

  @Test("SQLite: each day exactly those are gone that are past the days of the first rule that means them")
  func model() async throws {
    let seed = UInt64.random(in: 0...UInt64.max)
    print("RuledRetentionTests seed \(seed)")
    var random = SeededRandom(seed: seed)
    let rig = StoreRig()
    let rules = [
      Self.rule("shop", "crash", days: 6), Self.rule("shop", "log?", days: 1), Self.rule("*", "log*", days: 3),
      Self.rule("till-*", "*", days: 4),
    ]
    let (names, types) = (["shop", "till-1", "till-2", "prism"], ["crash", "log1", "log.long", "order"])
    let options = { (options: inout SQLitePacketStore.Options) in
      (options.retention.days, options.retention.rules) = (8, rules)
    }
    var store = try rig.sqlite(options)
    var known: [(day: Int, namespace: String, type: String, numbers: [Int])] = []
    for day in 0..<24 {
      for _ in 0..<Int.random(in: 0...9, using: &random) {
        let first = (known.last?.numbers.last ?? 0) + 1
        let numbers = Array(first...first + Int.random(in: 0...120, using: &random))
        let (namespace, type) = (names.randomElement(using: &random)!, types.randomElement(using: &random)!)
        let payload = Bool.random(using: &random) ? Array("payload".utf8) : nil
        _ = try await store.take(
          StoreRig.packet(numbers, namespace: namespace, type: type, payload: payload))
        known.append((day, namespace, type, numbers))
        if Int.random(in: 0..<8, using: &random) == 0 {
          await store.close()
          store = try rig.sqlite(options)
        }
      }
      rig.time.advance(by: Self.day)
      rig.time.stepWallClock(milliseconds: Int64.random(in: -90...90, using: &random) * 86_400_000)
      try await Self.maintain(rig, store)
      let kept = known.filter { known in
        let rule = rules.first { $0.means(namespace: known.namespace, type: known.type) }
        return known.day >= day + 1 - min(8, rule?.days ?? 8)
      }
      #expect(try await store.numbers().compactMap { $0 } == kept.flatMap(\.numbers), "seed \(seed), day \(day)")
    }
    #expect(rig.logged.contains { $0.contains("past the days of a rule") && $0.contains("type=log?") })
    await store.close()
    let file = try SQLiteConnection(.init(path: rig.path + "/collector.db"))
    let (payloads, kinds) = (
      try file.firstInt("SELECT count(*) FROM payloads"), try file.firstInt("SELECT min(report) FROM payloads")
    )
    let first = try file.firstInt("SELECT min(id) FROM blocks") ?? .max
    #expect(payloads == 0 || kinds ?? 0 >= first, "no payload is left behind")
  }

  @Test("what an output has not taken stays until it has")
  func outputs() async throws {
    let rig = StoreRig()
    let store = try rig.sqlite {
      ($0.retention.rules, $0.retention.outputs) = ([Self.rule("*", "log", days: 1)], ["o"])
    }
    for type in ["log", "order", "log"] { _ = try await store.take(StoreRig.packet([1, 2], type: type)) }
    for _ in 0..<3 {
      rig.time.advance(by: Self.day)
      try await Self.maintain(rig, store)
    }
    #expect(try await store.numbers().count == 6)
    let source = store.outputSource("o")
    try await source.note(cursor: 3, refused: [])
    try await Self.maintain(rig, store)
    #expect(try await store.numbers().count == 4)
    try await source.note(cursor: 6, refused: [])
    try await Self.maintain(rig, store)
    #expect(try await store.numbers().count == 2)
    await store.close()
  }

  @Test("a list of rules that changed looks at all reports again, and one that did not goes on")
  func changed() async throws {
    let rig = StoreRig()
    let rules = [Self.rule("*", "log", days: 1), Self.rule("*", "order", days: 2)]
    for (days, list, left) in [(0, [rules[0]], 4), (4, [rules[0]], 2), (0, rules, 1), (1, rules, 1)] {
      let store = try rig.sqlite { ($0.retention.days, $0.retention.rules) = (90, list) }
      if days == 0, left == 4 {
        for type in ["log", "order", "crash", "log"] { _ = try await store.take(StoreRig.packet([1], type: type)) }
      }
      for _ in 0..<max(1, days) {
        rig.time.advance(by: Self.day * min(1, days))
        try await Self.maintain(rig, store)
      }
      #expect(try await store.numbers().count == left)
      await store.close()
    }
  }

  @Test("PostgreSQL: days that are past a rule leave by it, an output's reports stay, and the rest stays")
  func postgreSQL() async throws {
    let rig = try await PostgreSQLRig()
    let store = try rig.store {
      ($0.retention.days, $0.retention.rules) = (60, [Self.rule("prism", "t", days: 7), Self.rule("*", "*", days: 30)])
    }
    _ = try await store.take(StoreRig.packet([1, 2]))
    let connection = try PostgreSQLSetup(
      target: PostgreSQLTarget(uri: rig.server.uri(rig.database)), deadline: .seconds(10)
    ).connect()
    for days in [3, 20, 40] { try PostgreSQLStoreTests.addDay(connection, ago: days) }
    let source = store.outputSource("test")
    #expect(try await source.lead())
    try await source.note(cursor: 960, refused: [])
    try await PostgreSQLStoreTests.maintain(store)
    #expect(try await store.numbers() == [20, 3, 1, 2])
    try await source.note(cursor: 10_000, refused: [])
    try await PostgreSQLStoreTests.maintain(store)
    #expect(try await store.numbers() == [3, 1, 2])
    #expect(rig.logged.contains { $0.contains("past the days of a rule") && $0.contains("reports=1") })
    await source.close()
    await store.close()
  }
}
