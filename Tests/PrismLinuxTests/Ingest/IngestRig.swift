import Foundation
import Glibc
import PrismAdmission
import PrismBase
import PrismConfig
import PrismLinux
import PrismProtocol
import PrismTestSupport
import Synchronization

/// A store in memory: takes every batch, or holds all of them back until the test lets it go on.
final class ScriptedSink: ReportSink {
  private struct State {
    var commits: [[ReportBatch]] = []
    var isHeld = false
    var waiting: [CheckedContinuation<Void, Never>] = []
    var sequence: Int64 = 0
    var notes: [BatchNote] = []
    var failure: Refusal?
    var hasContention = false
  }
  private let state = Mutex(State())

  func noteContention() { state.withLock { $0.hasContention = true } }

  func append(
    _ batches: [ReportBatch], notes: [BatchNote], whenDone: @escaping @Sendable (CommitOutcome) -> Void
  ) {
    Task {
      await waitWhileHeld()
      let outcome = outcome(of: batches)
      if case .committed(let outcomes) = outcome {
        state.withLock { $0.notes += notes.filter { $0.isDue(after: outcomes) } }
      }
      whenDone(outcome)
    }
  }

  func note(_ key: String, of namespace: NamespaceName) async -> [UInt8]? {
    state.withLock { $0.notes.last { ($0.key, $0.namespace) == (key, namespace) }?.value }
  }

  private func outcome(of batches: [ReportBatch]) -> CommitOutcome {
    state.withLock { state in
      if let failure = state.failure { return .failed(failure) }
      state.commits.append(batches)
      return .committed(
        batches.map { batch in
          BatchOutcome(
            ids: batch.rows.map { row in
              state.sequence += 1
              return RowID(priority: batch.types[row.type].priority, sequence: state.sequence)
            }, epoch: "0123456789abcdefghij")
        })
    }
  }

  private func waitWhileHeld() async {
    await withCheckedContinuation { continuation in
      let goesOn = state.withLock { state in
        if state.isHeld { state.waiting.append(continuation) }
        return !state.isHeld
      }
      if goesOn { continuation.resume() }
    }
  }

  func hold() { state.withLock { $0.isHeld = true } }

  func release() {
    let waiting = state.withLock { state in
      defer { state.waiting = [] }
      state.isHeld = false
      return state.waiting
    }
    for continuation in waiting { continuation.resume() }
  }

  func fail(_ refusal: Refusal?) { state.withLock { $0.failure = refusal } }

  var commits: [[ReportBatch]] { state.withLock { $0.commits } }
  var hasContention: Bool { state.withLock { $0.hasContention } }
  var isWaitedFor: Bool { state.withLock { !$0.waiting.isEmpty } }
  var rowCount: Int { commits.joined().reduce(0) { $0 + $1.rows.count } }
}

/// A server on a socket in a folder of its own.
final class IngestRig: Sendable {
  let server: IngestServer
  let sink = ScriptedSink()
  let time = ManualTime(unixMilliseconds: 1_732_154_081_000)
  let path: String
  private let folder: String

  init(_ change: (inout Snapshot) -> Void = { _ in }) async throws {
    folder = TemporaryFolder.make()
    path = folder + "/ingest.sock"
    var snapshot = Self.snapshot
    change(&snapshot)
    let listener = try UnixListener(path: path, mode: 0o666)
    let box = SnapshotBox(snapshot)
    self.box = box
    server = try IngestServer(
      listener: listener, sink: sink, snapshot: { box.snapshot },
      facts: HostFacts(deviceID: "device-1", systemVersion: "Linux"), version: "9.9", time: time,
      log: Logger(level: .error))
    await server.start()
  }

  private let box: SnapshotBox

  private final class SnapshotBox: Sendable {
    private let value: Mutex<Snapshot>
    init(_ snapshot: Snapshot) { value = Mutex(snapshot) }
    var snapshot: Snapshot {
      get { value.withLock { $0 } }
      set { value.withLock { $0 = newValue } }
    }
  }

  func reload(_ change: (inout Snapshot) -> Void) {
    var snapshot = box.snapshot
    snapshot.generation += 1
    change(&snapshot)
    box.snapshot = snapshot
  }

  static var snapshot: Snapshot {
    var prism = NamespaceConfiguration(
      name: .prism, monitorList: [MonitoredType(ReportType("net")!, isUploadPayload: true)])
    prism.maxBodyBytes = 1_048_576
    return Snapshot(generation: 1, daemon: DaemonConfiguration(), namespaces: [.prism: prism])
  }

  /// Ends the server and takes the folder away. The clock is turned until nothing sleeps: no wait is left behind.
  func tearDown() async {
    sink.release()
    let done = Task { await server.stop() }
    let watch = Task { [time] in
      while !Task.isCancelled {
        time.advance(by: .seconds(60))
        await Task.yield()
      }
    }
    await done.value
    watch.cancel()
    unlink(path)
    rmdir(folder)
  }

  /// Waits for something that another thread does; false when it doesn't come within a minute.
  static func eventually(_ condition: () async -> Bool) async -> Bool {
    for _ in 0..<60_000 {
      if await condition() { return true }
      try? await Task.sleep(for: .milliseconds(1))
    }
    return false
  }
}

func withIngestRig(
  _ change: (inout Snapshot) -> Void = { _ in }, _ body: (IngestRig) async throws -> Void
) async throws {
  let rig = try await IngestRig(change)
  do { try await body(rig) } catch {
    await rig.tearDown()
    throw error
  }
  await rig.tearDown()
}
