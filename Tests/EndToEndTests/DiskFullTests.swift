import Foundation
import Glibc
import PrismClient
import PrismProtocol
import PrismTestSupport
import Testing

/// A small disk that a stranger fills, under the real daemon. `PRISM_E2E_DISK_FULL=200` for the long form, `PRISM_SEED`
/// for the same run again.
@Suite struct DiskFullTests {
  private static let positions = Seed.number("PRISM_E2E_DISK_FULL") ?? 8
  private static let diskMegabytes = 24

  @Test("a full disk: nothing answered is lost, uploads go on, and reports are taken again once there is space")
  func filledByAStranger() async throws {
    guard try await Programs.run("unshare", ["-m", "true"]).exitCode == 0 else {
      return print("DiskFullTests: NOT RUN: only root may mount a disk of its own")
    }
    var random = SeededRandom(seed: Seed.next("DiskFullTests: \(Self.positions) positions"))
    let mount = #"mount -t tmpfs -o size=\#(Self.diskMegabytes)m,mode=0700 tmpfs "${2%/*}/state" && exec "$0" "$@""#
    let harness = try await Harness(
      namespaces: ["shop": "url: URL\nperiodicTimerSecond: 1\nmonitorList: [{type: sample, isUploadPayload: true}]\n"],
      daemonPrefix: ["unshare", "-m", "sh", "-c", mount])
    do {
      try await harness.startCollector()
      try await harness.startDaemon()
      try await run(harness, try Stranger(harness), &random)
      await harness.stop()
    } catch {
      await harness.stop()
      throw error
    }
  }

  @Test(
    "a start on a full disk, after a kill too: the daemon serves, delivers what it has, and takes reports once there is space"
  )
  func startsOnAFullDisk() async throws {
    try await withHarness(
      namespaces: ["shop": "url: URL\nperiodicTimerSecond: 1\nmonitorList: [{type: sample, isUploadPayload: true}]\n"]
    ) { harness in
      let disk = "\(harness.folder)/state"
      let size = "size=\(Self.diskMegabytes)m,mode=0700"
      guard try await Programs.run("mount", ["-t", "tmpfs", "-o", size, "tmpfs", disk]).exitCode == 0 else {
        return print("DiskFullTests: NOT RUN: only root may mount a disk of its own")
      }
      do { try await restart(harness, Stranger(disk)) } catch {
        await harness.stop()
        _ = try await Programs.run("umount", [disk])
        throw error
      }
      try await harness.endDaemon(SIGTERM)
      _ = try await Programs.run("umount", [disk])
    }
  }

  private func restart(_ harness: Harness, _ stranger: Stranger) async throws {
    try await harness.startDaemon()
    var oracle = Oracle(harness)
    for signal in [SIGTERM, SIGKILL] {
      stranger.leave()
      oracle = try await Self.waitUntilTaken(oracle)
      try await harness.endDaemon(signal)
      stranger.fill(leaving: 0)
      try await harness.startDaemon()
      #expect(try await oracle.sendUntilRefused() && oracle.codes == ["disk_full"])
      #expect(try await harness.status()["store"]?["state"]?.string == "diskFull")
    }
    try await harness.startCollector()
    try await harness.waitUntilSent(["shop"])
    stranger.leave()
    oracle = try await Self.waitUntilTaken(oracle)
    try await harness.waitUntilSent(["shop"])
    for kind in ["meta", "payload"] { try await harness.expectArrived("shop", kind, oracle.stored.sorted()) }
    Harness.expectIdentity(try await harness.status())
  }

  private static func waitUntilTaken(_ oracle: Oracle) async throws -> Oracle {
    var (held, isTaken) = (oracle, false)
    try await waitUntil("reports are taken again") {
      isTaken = try await held.send(1)
      return isTaken
    }
    return held
  }

  private func run(_ harness: Harness, _ stranger: Stranger, _ random: inout SeededRandom) async throws {
    var oracle = Oracle(harness)
    var slowest = Duration.zero
    for position in 0..<Self.positions {
      stranger.fill(leaving: Int.random(in: 0...1_500_000, using: &random))
      let isRefused = try await oracle.sendUntilRefused()
      #expect(isRefused, "position \(position): the disk was not full")
      try await waitUntil("everything is delivered on a full disk") {
        let status = try await harness.status()
        return ["meta", "payload"].allSatisfy { kind in
          ["waiting", "claimed"].allSatisfy { Harness.rows(status, "shop", kind, $0) == 0 }
        }
      }
      stranger.leave()
      let clock = ContinuousClock()
      let start = clock.now
      do { oracle = try await Self.waitUntilTaken(oracle) } catch {
        throw Failed("position \(position): \(error); \(stranger.listing); \(await harness.diagnosis)")
      }
      slowest = max(slowest, clock.now - start)
    }
    print(
      "DiskFullTests: \(oracle.stored.count) reports stored, \(oracle.refused) refused; taken again after at most \(slowest)"
    )
    #expect(oracle.codes == ["disk_full"], "nothing else is refused")
    try await harness.waitUntilSent(["shop"])
    for kind in ["meta", "payload"] { try await harness.expectArrived("shop", kind, oracle.stored.sorted()) }
    Harness.expectIdentity(try await harness.status())
    #expect(try await harness.status()["store"]?["state"]?.string == "working")
  }

  /// Fills the disk from outside of the daemon's world.
  private struct Stranger {
    private let file: String
    private let disk: String

    init(_ harness: Harness) throws {
      let process = try #require(harness.daemonProcess)
      self.init("/proc/\(process)/root\(harness.folder)/state")
    }

    init(_ disk: String) { (self.disk, file) = (disk, disk + "/stranger") }

    func fill(leaving spare: Int) {
      var facts = statvfs()
      guard statvfs(disk, &facts) == 0 else { return }
      let free = Int(facts.f_bavail) * Int(facts.f_bsize)
      let descriptor = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
      posix_fallocate(descriptor, lseek(descriptor, 0, SEEK_END), off_t(max(4096, free - spare)))
      close(descriptor)
    }

    func leave() { unlink(file) }

    /// The files on the disk, for a test's message.
    var listing: String {
      let names = (try? FileManager.default.contentsOfDirectory(atPath: disk)) ?? []
      return names.map { name in
        let facts = try? FileManager.default.attributesOfItem(atPath: "\(disk)/\(name)")
        return "\(name) \(facts?[.size] as? Int ?? -1)"
      }.joined(separator: ", ")
    }
  }

  /// The answers that the client got.
  private struct Oracle {
    private let client: PrismClient
    private var next = 0
    private(set) var stored: Set<Int> = []
    private(set) var refused = 0
    private(set) var codes: Set<String> = []

    init(_ harness: Harness) { client = harness.client() }

    /// - Returns: whether all were stored.
    mutating func send(_ count: Int) async throws -> Bool {
      let numbers = next..<next + count
      next = numbers.upperBound
      let answers = try await client.report(
        contentsOf: numbers.map { Sample.report($0, in: "shop", hasPayload: true) })
      for (number, answer) in zip(numbers, answers) {
        switch answer {
        case .stored: stored.insert(number)
        case .sampled: continue
        case .refused(let refusal):
          refused += 1
          codes.insert(refusal.code.rawValue)
        }
      }
      return answers.allSatisfy { if case .stored = $0 { true } else { false } }
    }

    mutating func sendUntilRefused() async throws -> Bool {
      for _ in 0..<400 {
        if try await !send(200) { return true }
      }
      return false
    }
  }
}
