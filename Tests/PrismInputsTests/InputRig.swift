import Glibc
import PrismAdmission
import PrismBase
import PrismConfig
import PrismEngine
import PrismProtocol
import PrismTestSupport
import Synchronization

@testable import PrismInputs
@testable import PrismLinux

/// A report as it went to the store.
struct StoredReport: Equatable {
  var namespace: String
  var type: String
  var reportID: String?
  var createdTime: Int64
  /// The report's own members and the common ones.
  var meta: JSONValue
  var payload: [UInt8]?
}

/// The engine's sink, with a memory, and a switch to fail.
final class RecordingSink: ReportSink {
  private struct State {
    var stored: [StoredReport] = []
    var failure: Refusal?
    var lines: [String] = []
  }
  private let inner: any ReportSink
  private let state = Mutex(State())

  init(_ inner: any ReportSink) { self.inner = inner }

  func noteContention() { inner.noteContention() }

  func append(
    _ batches: [ReportBatch], notes: [BatchNote], whenDone: @escaping @Sendable (CommitOutcome) -> Void
  ) {
    if let failure = state.withLock({ $0.failure }) {
      Task { whenDone(.failed(failure)) }
      return
    }
    inner.append(batches, notes: notes) { outcome in
      if case .committed(let outcomes) = outcome {
        for (batch, outcome) in zip(batches, outcomes) { self.note(batch, outcome) }
      }
      whenDone(outcome)
    }
  }

  func note(_ key: String, of namespace: NamespaceName) async -> [UInt8]? { await inner.note(key, of: namespace) }

  private func note(_ batch: ReportBatch, _ outcome: BatchOutcome) {
    let notTaken = Set(outcome.exceptions.map(\.row))
    for (index, row) in batch.rows.enumerated() where !notTaken.contains(index) {
      let members = Array(batch.arena[row.body]) + [UInt8(ascii: ",")] + batch.context.members
      let meta = try? JSONValue(parsing: [0x7B] + members + [0x7D], allowsDuplicateKeys: true)
      let report = StoredReport(
        namespace: batch.namespace.text, type: batch.types[row.type].type.text,
        reportID: row.clientReportID.map { String(decoding: batch.arena[$0], as: UTF8.self) },
        createdTime: row.createdTime, meta: meta ?? .null, payload: row.payload.map { Array(batch.arena[$0]) })
      state.withLock { $0.stored.append(report) }
    }
  }

  func fail(_ refusal: Refusal?) { state.withLock { $0.failure = refusal } }
  /// Reports that were taken, duplicates left out.
  var stored: [StoredReport] { state.withLock { $0.stored } }
  /// Takes the lines of the inputs' log.
  func say(_ line: String) { state.withLock { $0.lines.append(line) } }
  var lines: [String] { state.withLock { $0.lines } }
}

/// The ingest server with its other inputs, over a real engine and store.
struct InputRig {
  let server: IngestServer
  let sink: RecordingSink
  let engine: Engine
  let path: String

  static func snapshot(_ change: (inout Snapshot) -> Void = { _ in }) -> Snapshot {
    var snapshot = DeliveryRig.snapshot()
    for (name, types) in [("otel", ["otel.log", "otel.span", "otel.metric"]), ("logs", ["app", "app.web"])] {
      let list = types.map { MonitoredType(ReportType($0)!) } + [MonitoredType(.appCrash, isUploadPayload: true)]
      let namespace = NamespaceConfiguration(name: NamespaceName(name)!, monitorList: list)
      snapshot.namespaces[namespace.name] = namespace
    }
    snapshot.daemon.otlp.listen = "127.0.0.1:0"
    change(&snapshot)
    return snapshot
  }

  /// A server that listens. - Parameter path: of the ingest socket.
  static func serving(_ engine: Engine, _ sink: RecordingSink, at path: String) async throws -> InputRig {
    let server = try IngestServer(
      listener: try UnixListener(path: path, mode: 0o600), sink: sink, snapshot: { engine.hub.current },
      facts: HostFacts(deviceID: "device", systemVersion: "Linux"), version: "9.9", feed: engine.feed,
      inputs: OtherInputs(log: Logger { sink.say($0) }) { engine.hub.current },
      log: Logger { sink.say($0) })
    await server.start()
    try await server.listen(engine.hub.current.daemon)
    return InputRig(server: server, sink: sink, engine: engine, path: path)
  }

  /// Stops the server in order, and starts another one over the same store. The test stops that one.
  func restarted() async throws -> InputRig {
    await server.stop()
    return try await Self.serving(engine, sink, at: path)
  }

  func port(_ entrance: Entrance) async throws -> UInt16 {
    guard let port = await server.port(of: entrance) else { throw InputClient.Failure(code: ENOTCONN) }
    return port
  }
}

func withInputRig(
  _ change: (inout Snapshot) -> Void = { _ in }, _ body: (InputRig) async throws -> Void
) async throws {
  let delivery = DeliveryRig()
  let engine = try await delivery.engine(InputRig.snapshot(change))
  let sink = RecordingSink(engine.sink)
  let rig = try await InputRig.serving(engine, sink, at: delivery.folder + "/ingest.sock")
  let result: Result<Void, any Error>
  do { result = .success(try await body(rig)) } catch { result = .failure(error) }
  await rig.server.stop()
  await engine.stop()
  try result.get()
}
