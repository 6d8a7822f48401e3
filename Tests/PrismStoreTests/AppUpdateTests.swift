import PrismProtocol
import PrismStore
import PrismTestSupport
import Testing

@Suite("The store, where apps say their version themselves")
struct AppUpdateTests {
  private let rig = Rig()

  /// One connection of an app.
  private struct Connection {
    let app: AppVersion
    let context: CommonContext
    let userID: UInt32

    init(_ name: String, _ version: String, user: UInt32 = 1000) {
      app = AppVersion(name: name, version: version)
      context = CommonContext(members: Array(#""APP_NAME":"\#(name)","APP_VERSION":"\#(version)""#.utf8))
      userID = user
    }
  }

  private func report(_ numbers: ClosedRange<Int>, by connection: Connection, to store: ReportStore) async {
    for priority in [Priority.rest, .crash] {
      let batch = rig.batch(
        numbers, priority: priority, payload: priority == .crash ? [1] : nil, context: connection.context,
        from: connection.userID, app: connection.app)
      _ = await store.append([batch])
    }
  }

  /// Until nothing is left to do.
  private func maintain(_ store: ReportStore) async throws { while try await store.maintain() {} }

  /// The numbers of the metas that wait, with the version that stored them.
  private func waiting(in store: ReportStore) async throws -> [String] {
    var found: [String] = []
    while let packet = try await store.claim(rig.claim()) {
      for row in packet.rows {
        let meta = try JSONValue(parsing: row)
        found.append("\(meta["APP_NAME"]?.string ?? "") \(meta["APP_VERSION"]?.string ?? "") \(meta["n"]?.int ?? 0)")
      }
      try await store.settle(.delivered(packet.id, receipt: rig.receipt))
    }
    return found.sorted()
  }

  /// Few rows carry what they have in common themselves, many have it in a row of its own.
  @Test("clears what an app stored under another version, and nothing of other apps and users", arguments: [3, 40])
  func update(count: Int) async throws {
    let store = try await rig.open()
    await report(1...count, by: Connection("pos", "1.0"), to: store)
    await report(1...1, by: Connection("till", "1.0"), to: store)
    await report(1...1, by: Connection("pos", "1.0", user: 1001), to: store)
    try await maintain(store)
    #expect(try await store.ledger()[.cleared] == 0)
    await report(50...50, by: Connection("pos", "1.1"), to: store)
    try await maintain(store)
    let ledgers = try await (store.ledger(), store.ledger(Rig.shop, .payload))
    #expect(ledgers.0[.cleared] == 2 * count && ledgers.1[.cleared] == count)
    #expect(ledgers.0.isBalanced && ledgers.1.isBalanced)
    let kept = ["pos 1.0 1", "pos 1.1 50", "till 1.0 1"]
    #expect(try await waiting(in: store) == kept.flatMap { [$0, $0] })
  }

  @Test("goes on with it after a restart, and clears it once")
  func restart() async throws {
    do {
      let store = try await rig.open()
      await report(1...30, by: Connection("pos", "1.0"), to: store)
      await report(31...31, by: Connection("pos", "1.1"), to: store)
      await store.close()
    }
    let store = try await rig.open()
    await report(32...32, by: Connection("pos", "1.1"), to: store)
    try await maintain(store)
    #expect(try await store.ledger()[.cleared] == 60)
    // The older version comes back, as after a rollback.
    await report(33...33, by: Connection("pos", "1.0"), to: store)
    try await maintain(store)
    #expect(try await store.ledger()[.cleared] == 64)
    #expect(try await waiting(in: store) == ["pos 1.0 33", "pos 1.0 33"])
  }

  @Test("leaves what is on its way to the collector")
  func inFlight() async throws {
    let store = try await rig.open()
    await report(1...5, by: Connection("pos", "1.0"), to: store)
    let packet = try #require(try await store.claim(rig.claim(items: 4)))
    await report(6...6, by: Connection("pos", "1.1"), to: store)
    try await maintain(store)
    #expect(try await store.ledger()[.cleared] == 6)
    try await store.settle(.delivered(packet.id, receipt: rig.receipt))
    #expect(try await store.ledger()[.delivered] == 4)
    #expect(try await store.ledger().isBalanced)
  }

  @Test("follows a hundred apps of a user: more names cost no more memory")
  func bounded() async throws {
    let store = try await rig.open()
    for number in 0..<110 { await report(1...1, by: Connection("app\(number)", "1.0"), to: store) }
    for number in 0..<110 { await report(2...2, by: Connection("app\(number)", "1.1"), to: store) }
    try await maintain(store)
    #expect(try await store.ledger()[.cleared] == 200)
  }
}
