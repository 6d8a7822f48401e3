import Foundation
import PrismAdmission
import PrismBase
import PrismConfig
import PrismProtocol
import PrismStore
import PrismTestSupport
import Testing

@testable import PrismEngine
@testable import PrismLinux

/// Sessions from a greeting to the report of their hour, with a real socket, engine and store.
@Suite(.serialized) struct SessionReportTests {
  private static let shop = NamespaceName("shop")!
  private let rig = DeliveryRig()

  private func withServer(_ body: (IngestServer, SessionReports, Engine) async throws -> Void) async throws {
    let engine = try await rig.engine(
      DeliveryRig.snapshot {
        $0.monitorList += [MonitoredType(.appHealth), MonitoredType(.appCrash)]
        $0.isUpload = false  // reports that are counted stay
      })
    let server = try IngestServer(
      listener: try UnixListener(path: rig.folder + "/ingest.sock", mode: 0o600), sink: engine.sink,
      snapshot: { engine.hub.current }, facts: HostFacts(deviceID: "device", systemVersion: "Linux"), version: "9.9",
      time: rig.time, log: Logger(level: .error))
    await server.start()
    let reports = SessionReports(
      server: server, configuration: { engine.hub.current }, time: rig.time, log: Logger(level: .error))
    try await body(server, reports, engine)
    await server.stop()
    await engine.stop()
    // The server's own tasks end with their sleep, and the store with them.
    while let deadline = rig.time.nextDeadline {
      rig.time.advance(by: max(.zero, deadline - rig.time.uptime))
      await Task.yield()
    }
  }

  private func speak(_ lines: String...) async throws -> IngestClient {
    let client = try IngestClient(rig.folder + "/ingest.sock")
    try await client.send(lines.map { $0 + "\n" }.joined())
    _ = try await client.lines(lines.count)
    return client
  }

  private func hours(_ engine: Engine) async throws -> Int {
    try await engine.parts.store.typeCounts(of: Self.shop).metas[.appHealth] ?? 0
  }

  @Test("a program's session, its crash and its time become one report of the hour, over a restart, and only one")
  func hour() async throws {
    let hello = #"{"hello":{"app":{"APP_NAME":"pos","APP_VERSION":"4.2.0"},"session":"s-1"}}"#
    let crash = #"{"namespace":"shop","type":"appCrash","meta":{"reason":"SIGSEGV"}}"#
    try await withServer { _, reports, engine in
      let client = try await speak(hello, crash)
      rig.time.advance(by: .seconds(60))
      await reports.look()
      _ = client
    }
    try await withServer { _, reports, engine in
      let client = try await speak(hello, #"{"namespace":"shop","type":"order","meta":{"n":1}}"#)
      rig.time.advance(by: .seconds(3600))
      for _ in 0..<3 { await reports.look() }
      #expect(try await hours(engine) == 1)
      let note = try #require(try await engine.parts.store.note(Self.shop, AppHealth.noteKey))
      #expect(AppHealth(try JSONValue(parsing: note)).apps.isEmpty)
      _ = client
    }
  }
}
