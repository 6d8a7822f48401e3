import Foundation
import Glibc
import PrismClient
import PrismProtocol
import PrismTestSupport
import Testing

/// The real daemon on files that are not what it wrote. `PRISM_E2E_DAMAGE=100` for the long form.
@Suite struct DamagedStateTests {
  private static let rounds = Seed.number("PRISM_E2E_DAMAGE") ?? 4
  private static let shop = [
    "shop": "url: URL\nperiodicTimerSecond: 1\nmonitorList: [{type: sample, isUploadPayload: true}]\n"
  ]

  @Test(
    "a damaged, cut, replaced or deleted database: the daemon runs, says so, and sends what is whole and nothing else")
  func damaged() async throws {
    var random = SeededRandom(seed: Seed.next("DamagedStateTests: \(Self.rounds) rounds"))
    for round in 0..<Self.rounds {
      try await withHarness(namespaces: Self.shop) { harness in try await Self.round(round, harness, &random) }
    }
  }

  private static func round(_ round: Int, _ harness: Harness, _ random: inout SeededRandom) async throws {
    try await harness.startDaemon()
    var sent = 0
    func send(_ count: Int) async throws {
      let answers = try await harness.client().report(
        contentsOf: (sent..<sent + count).map { Sample.report($0, in: "shop", hasPayload: true) })
      sent += count
      for answer in answers {
        guard case .stored = answer else { throw Failed("round \(round): \(answer); \(await harness.diagnosis)") }
      }
    }
    try await send(600)
    let isRunning = round % 2 == 0
    if !isRunning { try await harness.endDaemon(SIGKILL) }
    let what = try damage(harness.folder + "/state/prism.db", round, &random)
    if !isRunning { try await harness.startDaemon() }
    try await harness.startCollector()
    // The first client that meets the damage may be refused; then reports are taken again.
    try await waitUntil("reports are taken after \(what)") {
      let answers = try await harness.client().report(contentsOf: [Sample.report(sent, in: "shop", hasPayload: true)])
      sent += 1
      return answers.allSatisfy { if case .stored = $0 { true } else { false } }
    }
    try await harness.waitUntilSent(["shop"])
    try await expectWhole(harness, sent, "round \(round): \(what)")
  }

  private static func expectWhole(_ harness: Harness, _ sent: Int, _ what: String) async throws {
    let status = try await harness.status()
    Harness.expectIdentity(status)
    for kind in ["meta", "payload"] {
      let rows = try await harness.arrived("shop", kind)
      #expect(Set(rows.map(\.number)).count == rows.count, "\(what): \(kind) twice")
      for row in rows {
        let payload = kind == "payload" ? Sample.payloadHex(row.number) : ""
        let isWhole = row.textHex == Sample.textHex(row.number) && row.payloadHex == payload
        #expect(isWhole && row.number < sent, "\(what): \(kind) \(row.number) is not what was sent")
      }
      let corrupt = Harness.rows(status, "shop", kind, "corrupt")
      let refused = sent - 601  // only the tries after the damage may be
      let isSaid = harness.daemonLog.contains("is not known") || harness.daemonLog.contains("not a database")
      #expect(isSaid || rows.count + corrupt + refused >= sent, "\(what): \(rows.count) of \(sent), \(corrupt) corrupt")
    }
    print("DamagedStateTests: \(what): \(status["store"]?.text ?? "")")
  }

  private static func damage(_ path: String, _ round: Int, _ random: inout SeededRandom) throws -> String {
    let size = (try FileManager.default.attributesOfItem(atPath: path)[.size] as? Int) ?? 0
    switch round % 4 {
    case 0:
      unlink(path)
      return "the database deleted while it ran"
    case 1:
      let file = try FileHandle(forUpdating: URL(filePath: path))
      for _ in 0..<8 {
        try file.seek(toOffset: UInt64(Int.random(in: 0..<size, using: &random)))
        try file.write(contentsOf: [UInt8.random(in: 0...255, using: &random)])
      }
      return "eight bytes overwritten while it was down"
    case 2:
      truncate(path, off_t(Int.random(in: 0..<size, using: &random)))
      return "cut while it ran"
    default:
      try "not a database".write(toFile: path, atomically: false, encoding: .utf8)
      return "replaced by a text while it was down"
    }
  }
}
