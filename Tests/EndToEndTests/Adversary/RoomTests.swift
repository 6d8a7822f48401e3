import Foundation
import Glibc
import PrismTestSupport
import Testing

/// Each verb of each input, compressed, with the dearest answer, read and unread, by 16 users at once. The daemon stays below
/// 96 MiB in a memory cgroup as the unit's, serves a good user beside them, and ends after SIGTERM.
///
/// The short form takes one of each class and counts; the long form (`make soak-adversary`) takes all, and measures times.
@Suite(.serialized, .enabled(if: Crowd.isPermitted, Crowd.why))
struct RoomTests {
  struct Attack: Sendable, CustomTestStringConvertible {
    enum Place: Sendable { case ingest, otlp, forward, messages }
    let kind: String
    var place = Place.ingest
    /// Of each user.
    var connections = 8
    var testDescription: String { "\(kind), 16 users with \(connections) connections each" }
  }

  private static let isLong = soakFactor > 1
  private static let shortKinds: Set = [
    "listsUnread", "listsInBodies", "patchesUnread", "otlpAttributes", "otlpZstd", "forwardDoubles", "messages",
  ]
  static let attacks = isLong ? all : all.filter { shortKinds.contains($0.kind) }
  private static let all =
    [
      "lists", "listsUnread", "listsInBodies", "listsOverHTTP", "records", "recordsUnread", "patchesUnread",
      "commonInBodies",
    ]
    .map { Attack(kind: $0) }
    + ["otlpControls", "otlpAttributes", "otlpRecords", "otlpEmpty", "otlpJSON", "otlpZstd"].map {
      Attack(kind: $0, place: .otlp)
    }
    + ["forwardDoubles", "forwardControls", "forwardEvents", "forwardZstd"].map { Attack(kind: $0, place: .forward) }
    + [Attack(kind: "messages", place: .messages)]

  private static let namespaces = [
    "shop": "records: [{table: part, maxRecord: 2000}]\nmonitorList: [{type: sample}]\n",
    "otel": "monitorList: [{type: otel.log}]\n", "logs": "monitorList: [{type: app}, {type: syslog}]\n",
    "metrics": "monitorList: [{type: statsd}]\n",
  ]
  private static let users: UInt32 = 16
  private static let seconds = isLong ? 60 : 3600
  private static let answers = isLong ? 1000 : 40

  @Test("memory, answers and the end are bounded", arguments: attacks)
  func attacked(attack: Attack) async throws {
    let (otlp, forward, messages) = (try Harness.freePort(), try Harness.freePort(), try Harness.freePort())
    let cage = MemoryCage()
    defer { cage?.remove() }
    let harness = try await Crowd.harness(
      """
      otlp: {listen: "127.0.0.1:\(otlp)"}
      forward: {listen: "127.0.0.1:\(forward)"}
      syslog: {listen: "127.0.0.1:\(messages)"}
      statsd: {listen: "[::1]:\(messages)"}
      """, namespaces: Self.namespaces, limits: cage?.words ?? [])
    do {
      try await check(attack, harness, [.otlp: "\(otlp)", .forward: "\(forward)", .messages: "\(messages)"])
    } catch {
      await harness.stop()
      throw error
    }
    await harness.stop()
  }

  private func check(_ attack: Attack, _ harness: Harness, _ ports: [Attack.Place: String]) async throws {
    try await harness.startDaemon()
    let process = try #require(harness.daemonProcess)
    if attack.place == .ingest { try await Crowd.fill(harness, count: 100) }
    let attackers = try (0..<Self.users).map {
      try Crowd.attack(
        attack.kind, by: Crowd.firstAttacker + $0, on: harness, port: ports[attack.place], seconds: Self.seconds,
        connections: attack.connections)
    }
    let sockets = try Crowd.descriptors(process)
    try await waitUntil("\(attack.kind) has begun") { try Crowd.descriptors(process) >= sockets + 40 }
    let service = try await Crowd.service(of: harness, count: Self.answers)
    let peak = try Crowd.peakBytes(process)
    let duration = try await ContinuousClock().measure { try await harness.endDaemon(SIGTERM) }
    print("room: \(attack.testDescription): \(peak >> 20) MiB, p99 \(service.p99Ms) ms, SIGTERM \(duration)")
    #expect(service.answers == Self.answers)
    #expect(peak <= 96 << 20, "\(peak >> 20) MiB at most")
    if Self.isLong {
      #expect(service.p99Ms <= 50)
      #expect(duration < .seconds(5))
    }
    for attacker in attackers { try await attacker.end(SIGKILL) }
  }
}
