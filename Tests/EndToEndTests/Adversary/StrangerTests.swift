import Foundation
import Glibc
import PrismClient
import PrismTestSupport
import Testing

/// Attacks of a stranger who may report to the same namespace on a good user's reports, in the real daemon.
@Suite(.serialized, .enabled(if: Crowd.isPermitted, Crowd.why), .timeLimit(.minutes(30)))
struct StrangerTests {
  private static let stranger = Crowd.firstAttacker
  private static let shop =
    "url: URL\nmaxStoreMByte: 1\nmonitorList: [{type: sample}, {type: appCrash, isRealtime: false}]\n"

  @Test("equal ids of a stranger hide no report, and no flood of crashes evicts those of others")
  func idsAndCrashes() async throws {
    let harness = try await Crowd.harness("", namespaces: ["shop": Self.shop])
    do { try await check(harness) } catch {
      await harness.stop()
      throw error
    }
    await harness.stop()
  }

  private func check(_ harness: Harness) async throws {
    // Nothing leaves while the collector is away.
    try await harness.startDaemon()
    #expect(try await Crowd.send(50, "sample", by: Self.stranger, on: harness) == ["stored": 50, "duplicate": 0])
    #expect(try await Crowd.send(50, "sample", by: Crowd.goodUser, on: harness) == ["stored": 50, "duplicate": 0])
    #expect(try await Crowd.send(50, "sample", by: Crowd.goodUser, on: harness) == ["stored": 0, "duplicate": 50])
    #expect(try await Crowd.send(40, "appCrash", by: Crowd.goodUser, on: harness) == ["stored": 40, "duplicate": 0])
    // As many as fill the namespace several times.
    let evicted = soakFactor > 1 ? 100_000 : 10_000
    let attacker = try Crowd.attack("shopCrashes", by: Self.stranger, on: harness, seconds: 3600, connections: 8)
    try await waitUntil("the stranger's crashes evict each other") {
      Harness.rows(try await harness.status(), "shop", "meta", "evicted") >= evicted
    }
    try await attacker.end(SIGKILL)
    try await harness.startCollector()
    let types = ["sample": Array(0..<50), "appCrash": Array(0..<40)]
    try await waitUntil("the good user's reports arrive") {
      try await self.arrived(harness) == types
    }
    Harness.expectIdentity(try await harness.status())
  }

  /// The numbers of the good user's reports, by type.
  private func arrived(_ harness: Harness) async throws -> [String: [Int]] {
    let rows = try await harness.query(
      """
      SELECT type, json_extract(meta, '$.n') FROM report WHERE json_extract(meta, '$.uid') = \(Crowd.goodUser) ORDER BY 1, 2
      """)
    return Dictionary(grouping: rows) { $0[0] }.mapValues { $0.compactMap { Int($0[1]) }.sorted() }
  }

  @Test(
    "several hundred namespaces whose collectors hang, and few descriptors: the daemon lives, and others are served")
  func hangingCollectors() async throws {
    // Connects are answered by the kernel; nothing ever reads.
    let hanging = try (0..<4).map { _ in try Self.silentListener() }
    defer { for listener in hanging { close(listener.descriptor) } }
    var namespaces = ["shop": "url: URL\nperiodicTimerSecond: 1\nmonitorList: [{type: sample, isRealtime: true}]\n"]
    for number in 0..<300 {
      let port = hanging[number % hanging.count].port
      namespaces["hang-\(number)"] =
        "url: http://127.0.0.1:\(port)\nperiodicTimerSecond: 1\nmonitorList: [{type: sample, isRealtime: true}]\n"
    }
    let harness = try await Crowd.harness("", namespaces: namespaces, limits: ["prlimit", "--nofile=100:400"])
    do { try await check(harness, hanging: 300) } catch {
      await harness.stop()
      throw error
    }
    await harness.stop()
  }

  private func check(_ harness: Harness, hanging count: Int) async throws {
    try await harness.startCollector()
    try await harness.startDaemon()
    let process = try #require(harness.daemonProcess)
    let client = harness.client()
    for number in 0..<count { _ = try await client.report(Sample.report(number, in: "hang-\(number)")) }
    // All of their places are taken, but for the quarter that is kept.
    try await waitUntil("uploads hang") { try Self.sockets(process) >= 20 }
    let idle = try Crowd.attack("idle", by: Crowd.firstAttacker, on: harness, seconds: 3600, connections: 400)
    var most = 0
    for number in 1...20 {
      _ = try await client.report(Sample.report(number, in: "shop"))
      most = max(most, try Self.descriptors(process))
    }
    #expect(most <= 400 - 48, "\(most) of 400 descriptors")
    // Once the first have timed out, what hangs leaves a quarter of the places.
    try await waitUntil("others' reports arrive") {
      most = max(most, try Self.descriptors(process))
      return try await harness.arrived("shop", "meta").count == 20
    }
    #expect(most <= 400 - 48, "\(most) of 400 descriptors")
    try await idle.end(SIGKILL)
  }

  private static func silentListener() throws -> (descriptor: Int32, port: UInt16) {
    let port = try Harness.freePort()
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    var address = sockaddr_in()
    (address.sin_family, address.sin_port) = (sa_family_t(AF_INET), port.bigEndian)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    let bound = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    guard bound == 0, listen(descriptor, SOMAXCONN) == 0 else { throw Failed("no listener: errno \(errno)") }
    return (descriptor, port)
  }

  private static func descriptors(_ process: Int32) throws -> Int {
    try FileManager.default.contentsOfDirectory(atPath: "/proc/\(process)/fd").count
  }

  private static func sockets(_ process: Int32) throws -> Int {
    let folder = "/proc/\(process)/fd"
    return try FileManager.default.contentsOfDirectory(atPath: folder).count {
      (try? FileManager.default.destinationOfSymbolicLink(atPath: "\(folder)/\($0)"))?.hasPrefix("socket:") == true
    }
  }
}
