import Foundation
import Glibc
import PrismAdmission
import PrismBase
import PrismConfig
import PrismControl
import PrismEngine
import PrismLinux
import PrismProtocol
import PrismTestSupport
import Testing

/// The seam between inputs and admission, with an input that is not the ingest socket, a real engine and a real store.
@Suite("Reports of other inputs") struct SubmissionTests {
  private static let shop = NamespaceName("shop")!
  private static let peer = ReportingPeer(userID: 4711, groupIDs: [4711], processID: 1)

  @Test("a file is stored once, with the note of its place, over a restart too") func folder() async throws {
    let (rig, folder) = (DeliveryRig(), TemporaryFolder.make())
    defer { try? FileManager.default.removeItem(atPath: folder) }
    try await withServer(rig) { server, engine in
      let input = FolderInput(folder, namespace: Self.shop, peer: Self.peer, sink: server)
      try write(["1.order": #"{"n":1}"#, "2.order": "{\"n\":\n2}"], to: folder)
      #expect(try await input.takeFiles() == [.stored, .stored])
      #expect(try await input.takeFiles() == [])
      #expect(await server.counters.tally.stored == 2)
    }
    try await withServer(rig) { server, engine in
      let input = FolderInput(folder, namespace: Self.shop, peer: Self.peer, sink: server)
      #expect(try await input.takeFiles() == [])
      try write(["3.order": #"{"n":3}"#], to: folder)
      #expect(try await input.takeFiles() == [.stored])
    }
  }

  @Test("a report is refused for the same reasons as on the socket; a refusal for good does not hold the place back")
  func refusals() async throws {
    let (rig, folder) = (DeliveryRig(), TemporaryFolder.make())
    defer { try? FileManager.default.removeItem(atPath: folder) }
    try await withServer(rig) { server, engine in
      let input = FolderInput(folder, namespace: Self.shop, peer: Self.peer, sink: server)
      let large = #"{"n":"\#(String(repeating: "x", count: Limits.metaBytesMax))"}"#
      try write(
        [
          "1.order": #"{"n":1}"#, "2.none": #"{"n":2}"#, "3.order": "[]", "4.order": "{}", "5.order": large,
          "6.order": "{",
        ],
        to: folder)
      let answers = try await input.takeFiles()
      #expect(
        answers.map { $0.refusal?.code } == [
          nil, .unknownType, .badRequest, .badRequest, .metaTooLarge, .badRequest,
        ])
      #expect(try await input.takeFiles() == [])
      let tally = await server.counters.tally
      #expect((tally.received, tally.stored) == (6, 1))
      #expect(tally.refused == [.unknownType: 1, .badRequest: 3, .metaTooLarge: 1])
    }
  }

  @Test("a note waits with the reports that may be taken later") func retriedNote() async throws {
    try await withIngestRig { rig in
      let folder = TemporaryFolder.make()
      defer { try? FileManager.default.removeItem(atPath: folder) }
      let input = FolderInput(folder, namespace: .prism, peer: Self.peer, sink: rig.server)
      try write(["1.net": #"{"n":1}"#], to: folder)
      rig.sink.fail(Refusal(.diskFull, "full", retryMilliseconds: 2000))
      #expect(try await input.takeFiles().map { $0.refusal?.code } == [.diskFull])
      rig.sink.fail(nil)
      #expect(try await input.takeFiles() == [.stored])
      #expect(try await input.takeFiles() == [])
    }
  }

  @Test("a group and the socket's reports are one commit, and the group is answered after it") func oneCommit()
    async throws
  {
    try await withIngestRig { rig in
      let server = rig.server
      rig.sink.hold()
      let first = Task { await server.submit(Self.group([1])) }
      #expect(await IngestRig.eventually { rig.sink.isWaitedFor })
      let second = Task { await server.submit(Self.group([2, 3], userID: 5)) }
      let client = try IngestClient(rig.path)
      try await client.send(#"{"type":"net","meta":{"n":4}}"# + "\n")
      #expect(await IngestRig.eventually { await server.counters.tally.received == 4 })
      #expect(await server.counters.tally.stored == 0)
      rig.sink.release()
      #expect(await first.value.count == 1)
      #expect(await second.value.count == 2)
      #expect(await IngestRig.eventually { rig.sink.commits.count == 2 })
      #expect(rig.sink.commits.map { $0.reduce(0) { $0 + $1.rows.count } } == [1, 3])
      #expect(Set(rig.sink.commits[1].map(\.userID)) == [5, getuid()])
    }
  }

  @Test("a group waits while its user's share of the memory has no room; what no share has is refused")
  func memory() async throws {
    try await withIngestRig { rig in
      let server = rig.server
      let most = AdmissionRules(IngestRig.snapshot).requestBytesMax
      let room = try #require(await server.reserve(bytes: most, userID: 7))
      let waiting = Task { await server.reserve(bytes: most, userID: 7)?.bytes }
      #expect(await IngestRig.eventually { await server.counters.memoryPauses == 1 })
      #expect(await server.reserve(bytes: 1000, userID: 8)?.bytes == 1000)  // another user's share
      #expect(await server.submit(Self.group([1], userID: 7), room: room).map(\.refusal) == [nil])
      #expect(await waiting.value == most)
      #expect(await server.reserve(bytes: most + 1, userID: 7) == nil)
      #expect(await IngestRig.eventually { await server.counters.memoryBytes == 0 })
    }
  }

  @Test("who follows sees the reports of every input") func feed() async throws {
    let rig = DeliveryRig()
    try await withServer(rig) { server, engine in
      let subscription = engine.feed.follow(.init(isRefusedOnly: true))
      let source = SubmissionSource(peer: Self.peer, sessionID: "s")
      let unknown = Submission("none", in: "shop", meta: #"{"n":1}"#.utf8, reportID: ReportID("a"), from: source)
      _ = await server.submit(SubmissionGroup([unknown], userID: 1))
      guard case .report(let report) = await subscription.next() else { throw Missing() }
      #expect([report.namespace, report.type, report.reportId] == ["shop", "none", "a"])
      #expect(report.isRefused && report.code == RefusalCode.unknownType.rawValue)
    }
  }
  private struct Missing: Error {}

  @Test("after the end a group is refused, and one that came before is answered") func stop() async throws {
    try await withIngestRig { rig in
      let server = rig.server
      rig.sink.hold()
      let before = Task { await server.submit(Self.group([1])) }
      #expect(await IngestRig.eventually { rig.sink.isWaitedFor })
      let end = Task { await server.stop() }
      #expect(await IngestRig.eventually { await server.reserve(bytes: 1, userID: 1) == nil })
      #expect(await server.submit(Self.group([2]))[0].refusal == .stopping)
      rig.sink.release()
      #expect(await before.value.map(\.refusal) == [nil])
      await end.value
    }
  }

  private static func group(_ numbers: [Int], userID: UInt32 = 4711) -> SubmissionGroup {
    let peer = ReportingPeer(userID: userID, groupIDs: [], processID: 1)
    let source = SubmissionSource(peer: peer, sessionID: "s")
    return SubmissionGroup(
      numbers.map { Submission("net", in: "prism", meta: "{\"n\":\($0)}".utf8, from: source) }, userID: userID)
  }

  private func write(_ files: [String: String], to folder: String) throws {
    for (name, text) in files { try text.write(toFile: "\(folder)/\(name).json", atomically: false, encoding: .utf8) }
  }

  /// An ingest server over a real engine, on the rig's own store.
  private func withServer(_ rig: DeliveryRig, _ body: (IngestServer, Engine) async throws -> Void) async throws {
    let engine = try await rig.engine()
    let path = rig.folder + "/ingest.sock"
    let server = try IngestServer(
      listener: try UnixListener(path: path, mode: 0o600), sink: engine.sink, snapshot: { engine.hub.current },
      facts: HostFacts(deviceID: "device", systemVersion: "Linux"), version: "9.9", feed: engine.feed,
      log: Logger(level: .error))
    await server.start()
    try await body(server, engine)
    await server.stop()
    await engine.stop()
  }
}
