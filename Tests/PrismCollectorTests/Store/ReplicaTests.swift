import Foundation
import Glibc
import PrismBase
import PrismProtocol
import PrismSQL
import PrismTestSupport
import Testing

@testable import PrismCollector

/// Several collectors on one database.
@Suite("Replicas on one PostgreSQL")
struct ReplicaTests {
  @Test("packets that reach several replicas at once are stored once each, in order, and no group waits in a circle")
  func once() async throws {
    let rig = try await PostgreSQLRig()
    let seed = SeededRandom.announcedSeed("packets at several replicas")
    var random = SeededRandom(seed: seed)
    // A circle would last: a busy machine does not.
    let stores = try (0..<3).map { _ in try rig.store { $0.commitDeadline = .seconds(60) } }
    var lines = (0..<10).map { _ in [OpenedPacket]() }
    for number in 0..<120 {
      let device = Int.random(in: 0..<10, using: &random)
      lines[device].append(
        try StoreRig.packet([number], device: "d\(device)", after: lines[device].last?.id))
    }
    let all = lines.flatMap { $0 }
    // A line that no replica knows begins with any packet.
    for line in lines { _ = try await stores[0].take(try #require(line.first)) }
    try await withThrowingTaskGroup(of: Bool.self) { group in
      for store in stores {
        let queue = PacketQueue(store: store, time: SystemTime())
        // Each replica gets every packet, in an order of its own.
        for packet in all.shuffled(using: &random) { group.addTask { try await Self.take(packet, queue) } }
      }
      let stored = try await group.reduce(0) { $0 + ($1 ? 1 : 0) }
      #expect(stored == all.count - lines.count, "each is counted stored once; the first of each line was before")
    }
    #expect(try await rig.value("SELECT sum(rows) FROM blocks") == "120")
    for (device, line) in lines.enumerated() {
      var filter = ReportFilter(scope: .everything)
      filter.device = "d\(device)"
      #expect(try await stores[0].numbers(filter) == line.compactMap { StoreRig.number(of: $0) })
    }
    #expect(stores.allSatisfy { $0.figures.retries == 0 })
    for store in stores { await store.close() }
  }

  /// As a sender does it: a packet for which there is no room comes again.
  private static func take(_ packet: OpenedPacket, _ queue: PacketQueue) async throws -> Bool {
    while true {
      switch await queue.take(packet) {
      case .success(let outcome):
        #expect([.stored(chainIsBroken: false), .duplicate].contains(outcome))
        return outcome != .duplicate
      case .failure(let refusal) where refusal.status == 425: await Task.yield()
      case .failure(let refusal): throw refusal
      }
    }
  }

  @Test("a state folder is of one collector, also where all else is in the database")
  func folder() async throws {
    let (rig, folder) = (try await PostgreSQLRig(), StoreRig())
    var options = CollectorOptions(state: folder.path, keys: ["main": CollectorTests.key])
    options.store = try PostgreSQLTarget(uri: rig.server.uri(rig.database))
    let first = try Collector(options, time: folder.time, log: folder.log)
    #expect(throws: StateLock.Failure.locked(folder: folder.path)) {
      try Collector(options, time: folder.time, log: folder.log)
    }
    await first.close()
    await (try Collector(options, time: folder.time, log: folder.log)).close()
  }

  @Test("a packet that is held for its predecessor notices that another replica stored it", .timeLimit(.minutes(3)))
  func held() async throws {
    let rig = try await PostgreSQLRig()
    let (one, other) = (try rig.store(), try rig.store())
    let queue = PacketQueue(store: one, time: SystemTime())
    let first = try StoreRig.packet([1])
    let second = try StoreRig.packet([2], after: first.id)
    let third = try StoreRig.packet([3], after: second.id)
    _ = try await one.take(first)
    async let late = queue.take(third)
    while queue.heldCount == 0 { await Task.yield() }
    #expect(try await other.take(second) == .stored(chainIsBroken: false))
    #expect(try await late.get() == .stored(chainIsBroken: false))
    #expect(try await other.numbers() == [1, 2, 3])
    for store in [one, other] { await store.close() }
  }

  @Test("a database that is killed under load: what was answered is there once", .timeLimit(.minutes(2)))
  func killedDatabase() async throws {
    let server = try await PostgreSQLServer()
    let rig = try await PostgreSQLRig(server)
    let stores = [try rig.store(), try rig.store()]
    let answered = await withTaskGroup(of: Int.self) { group in
      for (index, store) in stores.enumerated() {
        group.addTask { await Self.send(60, device: "d\(index)", to: store) }
      }
      group.addTask {
        for _ in 0..<3 {
          while (try? await rig.value("SELECT count(*) > 0 FROM blocks")) == nil { await Task.yield() }
          await server.signal(SIGKILL)
          try? await server.start()  // a database that stays away fails the senders
        }
        return 0
      }
      return await group.reduce(0, +)
    }
    #expect(answered == 120)
    #expect(try await rig.value("SELECT sum(rows) FROM blocks") == "120")
    for store in stores { await store.close() }
  }

  /// Sends packets one after the other, each until it is answered. - Returns: how many were.
  static func send(_ count: Int, device: String, to store: PostgreSQLPacketStore, from first: Int = 0) async -> Int {
    var (answered, last) = (0, PacketID?.none)
    for number in first..<first + count {
      guard let packet = try? StoreRig.packet([number], device: device, id: nil, after: last, reportPrefix: device)
      else {
        return answered
      }
      let deadline = SystemTime().uptime + .seconds(60)
      while SystemTime().uptime < deadline {
        if let outcome = try? await store.take(packet), outcome != .predecessorMissing {
          answered += 1
          last = packet.id
          break
        }
        await Task.yield()
      }
    }
    return answered
  }

  @Test("a database that is away at the start is waited for; a stop does not wait for it")
  func away() async throws {
    let server = try await PostgreSQLServer()
    let rig = try await PostgreSQLRig(server)
    await server.signal(SIGKILL)
    let store = try rig.store()
    #expect(store.failure?.contains("not reached") == true)
    await #expect(throws: StoreFailure.self) { try await store.take(StoreRig.packet([1])) }
    let stopped = try rig.store()
    await stopped.close()
    try await server.start()
    while store.failure != nil { await Task.yield() }
    #expect(try await store.take(StoreRig.packet([1])) == .stored(chainIsBroken: false))
    #expect(rig.logged.contains { $0.contains("packets are stored again") })
    await store.close()
  }

  @Test(
    "a full disk is a failure without a receipt; packets are taken again once there is room",
    .enabled(if: getuid() == 0, "a file system of a test's own needs root"))
  func full() async throws {
    let (disk, server) = (TemporaryFolder(), try await PostgreSQLServer())
    chmod(disk.path, 0o755)
    try #require(mount("prism", disk.path, "tmpfs", 0, "size=64m") == 0)
    defer { umount2(disk.path, Int32(MNT_DETACH)) }
    mkdir(disk("space"), 0o700)
    chown(disk("space"), 65534, 65534)
    try await server.sql("CREATE TABLESPACE small LOCATION '\(disk("space"))'")
    try await server.sql("CREATE DATABASE small TABLESPACE small")
    let store = try PostgreSQLPacketStore(
      .init(target: PostgreSQLTarget(uri: server.uri("small")), log: Logger(write: { _ in })))
    _ = try await store.take(StoreRig.packet([0]))
    var space = statvfs()
    try #require(statvfs(disk.path, &space) == 0)
    let ballast = Data(count: Int(space.f_bavail * space.f_bsize) - 2_000_000)
    try #require(FileManager.default.createFile(atPath: disk("stranger"), contents: ballast))
    let packet = try StoreRig.packet([1], payload: (0..<12_000_000).map { _ in .random(in: 0...255) })
    await #expect(throws: StoreFailure.self) { try await store.take(packet) }
    #expect(store.failure?.contains("53100") == true)
    unlink(disk("stranger"))
    #expect(try await store.take(packet) == .stored(chainIsBroken: false))
    #expect(store.failure == nil)
    await store.close()
  }
}

extension StoreRig {
  /// Of the first report.
  static func number(of packet: OpenedPacket) -> Int? {
    (try? JSONValue(parsing: Array(packet.reports.meta(packet.rows[0]))))?["n"]?.int
  }
}
