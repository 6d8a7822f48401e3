import Foundation
import Glibc
import PrismBase
import PrismHTTP
import PrismProtocol
import PrismTestSupport
import Testing

@testable import PrismCollector

/// By a clock that the test turns: what is held, and what is forgotten.
@Suite("The collector over time")
struct OrderTests {
  private let time = ManualTime()
  private let folder: String
  private let collector: Collector

  init() throws {
    folder = TemporaryFolder.make()
    collector = try Self.open(folder, time)
  }

  private static func open(_ folder: String, _ time: ManualTime) throws -> Collector {
    try Collector(
      CollectorOptions(state: folder, keys: ["main": CollectorTests.key]), time: time, log: Logger(write: { _ in }))
  }

  private func remove() { try? FileManager.default.removeItem(atPath: folder) }  // a left folder harms no test

  private func post(
    _ context: PacketContext, n: Int, after predecessor: PacketID? = nil, pending: Int = 0, to other: Collector? = nil
  ) async throws -> HTTPResponse {
    await (other ?? collector).answer(
      try CollectorTests.request(
        context, metas: [#"{"n":\#(n)}"#], dependsOn: predecessor, pendingCount: pending))
  }

  private func missing(_ answer: HTTPResponse) -> String? { answer.headers.first { $0.name == "Prism-Missing" }?.value }

  /// Moves the time until `task` ends.
  private func end<Value: Sendable>(_ task: Task<Value, any Error>) async throws -> Value {
    let clock = Task {
      while !Task.isCancelled {
        time.advance(by: .seconds(1))
        do { try await Task.sleep(for: .milliseconds(1)) } catch { return }  // it ended
      }
    }
    defer { clock.cancel() }
    return try await task.value
  }

  private func isDuplicate(_ answer: HTTPResponse) throws -> Bool? {
    try JSONValue(parsing: answer.body)["duplicate"]?.bool
  }

  private func reports(of collector: Collector) async throws -> [JSONValue] {
    let request = HTTPRequest(
      method: .get, path: "/reports", peer: HTTPPeer(address: "127.0.0.1", isLocal: true))
    return try JSONValue(parsing: await collector.answerReader(request, isOwner: true).body)["reports"]?.array ?? []
  }

  private func brokenChains() async throws -> [Int] {
    try await reports(of: collector).filter { $0["chainBroken"]?.bool == true }.compactMap { $0["meta"]?["n"]?.int }
  }

  @Test("a packet whose predecessor never comes is held for 30 s, then taken with a note that the chain broke")
  func held() async throws {
    defer { remove() }
    _ = try await post(CollectorTests.context(.meta), n: 1)
    let (late, lost) = (CollectorTests.context(.meta), CollectorTests.context(.meta))
    let answer = Task { try await post(late, n: 2, after: lost.packetID) }
    let start = time.uptime
    while time.uptime - start < .seconds(29) {
      time.advance(by: .seconds(1))
      for _ in 0..<200 { await Task.yield() }
    }
    #expect(try await brokenChains() == [], "it is still held")
    let clock = Task {
      while !Task.isCancelled {
        time.advance(by: .seconds(1))
        do { try await Task.sleep(for: .milliseconds(1)) } catch { return }  // it was answered
      }
    }
    #expect(try await answer.value.status == 200)
    clock.cancel()
    #expect(try await brokenChains() == [2])
    #expect(try await isDuplicate(post(lost, n: 1)) == false, "the predecessor is taken when it comes after all")
    #expect(try await brokenChains() == [2])
  }

  @Test("killed while it holds a packet, it takes it in its place, once, when it comes again", .timeLimit(.minutes(10)))
  func killedWhileHolding() async throws {
    defer { remove() }
    let (first, second, third) = (
      CollectorTests.context(.meta), CollectorTests.context(.meta), CollectorTests.context(.meta)
    )
    _ = try await post(first, n: 1)
    let held = Task { try await post(third, n: 3, after: second.packetID) }
    for _ in 0..<1000 { await Task.yield() }
    let left = folder + "/left"
    mkdir(left, 0o700)
    for name in ["collector.db", "collector.db-wal"] {
      try FileManager.default.copyItem(atPath: "\(folder)/\(name)", toPath: "\(left)/\(name)")
    }
    let next = try Self.open(left, time)
    async let late = post(third, n: 3, after: second.packetID, to: next)
    for _ in 0..<1000 { await Task.yield() }
    _ = try await post(second, n: 2, after: first.packetID, to: next)
    #expect(try await late.status == 200)
    #expect(try await isDuplicate(post(third, n: 3, after: second.packetID, to: next)) == true)
    let taken = try await reports(of: next)
    #expect(taken.map { $0["meta"]?["n"]?.int } == [1, 2, 3])
    #expect(taken.allSatisfy { $0["chainBroken"]?.bool == false })
    await (try collector.serve()).stop()
    #expect(try await held.value.status == 503)
  }

  @Test(
    "a packet whose predecessor its sender will send is never taken without it: 425 after 30 s", .timeLimit(.minutes(1))
  )
  func pending() async throws {
    defer { remove() }
    let (first, second, third) = (
      CollectorTests.context(.meta), CollectorTests.context(.meta), CollectorTests.context(.meta)
    )
    _ = try await post(first, n: 1)
    let held = Task { try await post(third, n: 3, after: second.packetID, pending: 1) }
    let answer = try await end(held)
    #expect(answer.status == 425 && missing(answer) == second.packetID.description)
    #expect(!answer.headers.contains { $0.name == "Retry-After" })
    #expect(try await isDuplicate(post(second, n: 2, after: first.packetID)) == false)
    #expect(try await isDuplicate(post(third, n: 3, after: second.packetID, pending: 1)) == false)
    #expect(try await brokenChains() == [])
  }

  @Test(
    "a recorded packet that names a pending one gets 410 in the end; one whose predecessor comes after all is taken",
    .timeLimit(.minutes(1)))
  func recordedPending() async throws {
    defer { remove() }
    let ids = OldIDs(now: time.unixMilliseconds)
    let context = { (id: PacketID) in
      PacketContext(deviceID: "d1", namespace: .prism, packetID: id, kind: .meta)
    }
    let (last, missing) = (context(ids.made(daysAgo: 0)), context(ids.made(daysAgo: 41)))
    let (old, next) = (context(ids.made(daysAgo: 40)), context(ids.made(daysAgo: 40)))
    _ = try await post(last, n: 1)
    let held = Task { try await post(old, n: 3, after: missing.packetID, pending: 1) }
    #expect(try await end(held).status == 410)
    // Its sender may be honest, and its clock wrong: those behind it wait, and all are taken.
    let behind = Task { try await post(next, n: 4, after: old.packetID, pending: 2) }
    while collector.queue.heldCount == 0 { await Task.yield() }
    #expect(try await post(missing, n: 2, after: last.packetID).status == 200)
    #expect(try await post(old, n: 3, after: missing.packetID).status == 200)
    #expect(try await behind.value.status == 200)
    #expect(try await reports(of: collector).map { $0["meta"]?["n"]?.int } == [1, 2, 3, 4])
    // Without a predecessor on its way, that is the answer at once.
    let recorded = try await post(context(ids.made(daysAgo: 50)), n: 5, after: ids.made(daysAgo: 51))
    #expect(recorded.status == 410)
    #expect(
      try JSONValue(parsing: recorded.body)["time"]?.int == Int(time.unixMilliseconds), "for a clock that is behind")
  }

  @Test("64 packets that come in any order are stored once each, in theirs", .timeLimit(.minutes(1)))
  func window() async throws {
    defer { remove() }
    let seed = SeededRandom.announcedSeed("a window at the collector")
    var random = SeededRandom(seed: seed)
    let contexts = (0...64).map { _ in CollectorTests.context(.meta) }
    _ = try await post(contexts[0], n: 0)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for n in (1...64).shuffled(using: &random) {
        group.addTask {
          let answer = try await post(contexts[n], n: n, after: contexts[n - 1].packetID, pending: n - 1)
          #expect(answer.status == 200)
          #expect(try isDuplicate(answer) == false)
        }
      }
      try await group.waitForAll()
    }
    #expect(try await reports(of: collector).map { $0["meta"]?["n"]?.int } == Array(0...64))
    #expect(try await brokenChains() == [])
  }

  @Test(
    "a packet behind one that was refused for good is refused at once, whichever comes first", .timeLimit(.minutes(1)))
  func stranded() async throws {
    defer { remove() }
    let (first, bad, third, fourth) = (
      CollectorTests.context(.meta), CollectorTests.context(.meta), CollectorTests.context(.meta),
      CollectorTests.context(.meta)
    )
    _ = try await post(first, n: 1)
    let held = Task { try await post(third, n: 3, after: bad.packetID, pending: 1) }
    while collector.queue.heldCount == 0 { await Task.yield() }
    let refused = await collector.answer(
      try CollectorTests.request(bad, metas: ["{no object"], dependsOn: first.packetID))
    #expect(refused.status == 422)
    let answer = try await held.value
    #expect(answer.status == 409 && missing(answer) == bad.packetID.description)
    #expect(try await post(fourth, n: 4, after: bad.packetID, pending: 1).status == 409)
    #expect(
      try await isDuplicate(post(third, n: 3, after: first.packetID)) == false, "it comes again with another name")
    #expect(try await brokenChains() == [])
  }

  @Test("a packet behind one that was refused for good is refused on a new stream, too; a stored one is a duplicate")
  func strandedOnNewStream() async throws {
    defer { remove() }
    let (bad, second, third) = (
      CollectorTests.context(.meta), CollectorTests.context(.meta), CollectorTests.context(.meta)
    )
    let refuse = { [collector] (context: PacketContext) in
      let request = try CollectorTests.request(context, metas: ["{no object"])
      #expect(await collector.answer(request).status == 422)
    }
    try await refuse(bad)
    let answer = try await post(second, n: 2, after: bad.packetID)
    #expect(answer.status == 409 && missing(answer) == bad.packetID.description)
    #expect(try await isDuplicate(post(second, n: 2)) == false)
    // Its predecessor is stored, and then comes damaged.
    #expect(try await isDuplicate(post(third, n: 3, after: second.packetID)) == false)
    let damaged = try CollectorTests.request(second, metas: ["{no object"])
    #expect(try isDuplicate(await collector.answer(damaged)) == true, "it was taken")
    #expect(try await isDuplicate(post(third, n: 3, after: second.packetID)) == true)
    let fourth = try await post(CollectorTests.context(.meta), n: 4, after: second.packetID)
    #expect(try isDuplicate(fourth) == false, "the store knows better")
    #expect(try await brokenChains() == [])
  }

  @Test("who has no key can't have a packet refused for good", .timeLimit(.minutes(1)))
  func strangersRefusal() async throws {
    defer { remove() }
    let (first, next) = (CollectorTests.context(.meta), CollectorTests.context(.meta))
    let held = Task { try await post(next, n: 2, after: first.packetID, pending: 1) }
    while collector.queue.heldCount == 0 { await Task.yield() }
    let foreign = try CollectorTests.request(first, metas: ["{}"], changing: ["prism-item-count": "20000"])
    #expect(await collector.answer(foreign).status == 413)
    _ = try await post(first, n: 1)
    #expect(try await held.value.status == 200)
    #expect(try await brokenChains() == [])
  }

  @Test("a wall clock that is stepped by 40 days and back makes nothing older: the packet is a duplicate")
  func steppedClock() async throws {
    defer { remove() }
    let packet = CollectorTests.context(.meta)
    _ = try await post(packet, n: 1)
    time.stepWallClock(milliseconds: 40 * 86_400_000)
    for n in 2..<5 { _ = try await post(CollectorTests.context(.meta), n: n) }
    while try await collector.store.maintain() {}
    #expect(try await isDuplicate(post(packet, n: 1)) == true)
    time.stepWallClock(milliseconds: -40 * 86_400_000)
    while try await collector.store.maintain() {}
    #expect(try await isDuplicate(post(packet, n: 1)) == true)
    #expect(try await reports(of: collector).count == 4)
  }

  @Test("packets that wait for one another are stored in one group with the first of them", .timeLimit(.minutes(10)))
  func chain() async throws {
    defer { remove() }
    var (predecessor, requests) = (PacketID?.none, [HTTPRequest]())
    for n in 1...17 {
      let context = CollectorTests.context(.meta)
      requests.append(try CollectorTests.request(context, metas: [#"{"n":\#(n)}"#], dependsOn: predecessor))
      predecessor = context.packetID
    }
    // Of a known stream: a packet without a predecessor that is known is held.
    _ = try await post(CollectorTests.context(.meta), n: 0)
    var answers: [Task<Int, Never>] = []
    for (count, request) in requests.dropFirst().reversed().enumerated() {
      answers.append(Task { await collector.answer(request).status })
      while collector.queue.heldCount <= count { await Task.yield() }
    }
    let before = collector.store.figures
    answers.append(Task { await collector.answer(requests[0]).status })
    for answer in answers { #expect(await answer.value == 200) }
    #expect(collector.store.figures.groups - before.groups == 1)
    #expect(collector.store.figures.packets - before.packets == 17)
    #expect(try await reports(of: collector).compactMap { $0["meta"]?["n"]?.int } == Array(0...17))
  }

  @Test("one device's held packets leave room for the others", .timeLimit(.minutes(10)))
  func places() async throws {
    defer { remove() }
    for device in ["greedy", "other"] {
      _ = await collector.answer(
        try CollectorTests.request(CollectorTests.context(.meta, device: device), metas: ["{}"]))
    }
    let orphan = { (device: String) in
      try CollectorTests.request(
        CollectorTests.context(.meta, device: device), metas: ["{}"], dependsOn: CollectorTests.context(.meta).packetID)
    }
    var greedy: [Task<Int, any Error>] = []
    for count in 1...HeldPackets.countOfDeviceMax {
      let request = try orphan("greedy")
      greedy.append(Task<Int, any Error> { await collector.answer(request).status })
      while collector.queue.heldCount < count { await Task.yield() }
    }
    let refused = await collector.answer(try orphan("greedy"))
    #expect(refused.status == 425)
    #expect(missing(refused) != nil)
    let request = try orphan("other")
    let other = Task<Int, any Error> { await collector.answer(request).status }
    while collector.queue.heldCount <= HeldPackets.countOfDeviceMax { await Task.yield() }
    await collector.queue.close()
    for held in greedy + [other] { #expect(try await held.value == 503) }
    #expect(await collector.answer(try orphan("other")).status == 503, "it stays closed")
  }

  @Test("a stop doesn't wait for held packets: their sender gets a time to come again", .timeLimit(.minutes(10)))
  func stop() async throws {
    defer { remove() }
    _ = try await post(CollectorTests.context(.meta), n: 1)
    let held = Task {
      try await post(CollectorTests.context(.meta), n: 2, after: CollectorTests.context(.meta).packetID)
    }
    let server = try collector.serve()
    await server.stop()
    let answer = try await held.value
    #expect(answer.status == 503)
    #expect(answer.headers.contains { $0.name == "Retry-After" })
  }

  @Test(
    "a full disk is 503 with Retry-After and no receipt; packets are taken again once there is room",
    .enabled(if: getuid() == 0, "a file system of a test's own needs root"))
  func full() async throws {
    let disk = folder + "/disk"
    mkdir(disk, 0o700)
    try #require(mount("prism", disk, "tmpfs", 0, "size=4m") == 0)
    defer {
      umount2(disk, Int32(MNT_DETACH))
      remove()
    }
    let small = try Self.open(disk, time)
    let request = try CollectorTests.request(
      CollectorTests.context(.payload), metas: ["{}"], payloads: [(0..<600_000).map { _ in .random(in: 0...255) }])
    var space = statvfs()
    try #require(statvfs(disk, &space) == 0)
    let left = Int(space.f_bavail) * Int(space.f_frsize) - 100_000
    try #require(FileManager.default.createFile(atPath: disk + "/stranger", contents: Data(count: left)))
    let refused = await small.answer(request)
    #expect(refused.status == 503 && refused.headers.contains { $0.name == "Retry-After" })
    #expect(!refused.headers.contains { $0.name == "Prism-Receipt" })
    unlink(disk + "/stranger")
    let taken = await small.answer(request)
    #expect(taken.status == 200)
    #expect(try isDuplicate(taken) == false)
  }
}
