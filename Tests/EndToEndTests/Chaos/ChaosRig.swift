import Foundation
import PrismBase
import PrismConfig
import PrismCurl
import PrismLinux
import PrismProtocol
import PrismStore
import PrismTestSupport
import Synchronization
import Testing

@testable import PrismEngine

/// The real transport, with one deadline for all: short where a test waits for it to pass, else long.
struct HurriedTransport: Transport {
  let base = CurlTransport()
  let timeout: Duration

  func post(_ request: TransferRequest) async -> PostAnswer {
    var request = request
    request.timeout = timeout
    return await base.post(request)
  }
}

/// The real engine, store and transport against servers of the test's own, over real sockets. Only the clock that pauses
/// are counted by is the test's: 5 s of it go by in a millisecond or so.
final class ChaosRig: Sendable {
  let delivery = DeliveryRig()
  let folder: String
  private let transport: any Transport
  private let clock: Task<Void, Never>
  private let running = Mutex<Engine?>(nil)

  init(timeout: Duration) throws {
    folder = TemporaryFolder.make()
    transport = HurriedTransport(timeout: timeout)
    clock = Task { [time = delivery.time] in
      while !Task.isCancelled {
        time.advance(by: .seconds(5))
        do { try await Task.sleep(for: .milliseconds(1)) } catch { return }  // the test is over
      }
    }
  }

  var engine: Engine {
    get throws { try #require(running.withLock { $0 }) }
  }

  func start(_ snapshot: Snapshot) async throws {
    let engine = try await delivery.engine(snapshot, over: transport)
    running.withLock { $0 = engine }
  }

  /// As SIGTERM does it.
  func stopEngine() async throws {
    try await engine.stop()
    running.withLock { $0 = nil }
  }

  func end() async {
    if let engine = running.withLock({ $0 }) { await engine.stop() }
    clock.cancel()
    try? FileManager.default.removeItem(atPath: folder)  // a left folder harms no test
  }

  /// Of the namespaces that misbehaviour is tried on.
  private static let windows = ["a": 1, "b": 8, "c": 64, "d": 64]

  /// - Parameter urls: of each namespace; `https` ones trust `caFile`.
  static func snapshot(
    _ urls: [String: String], caFile: HeldFile? = nil, _ change: (inout NamespaceConfiguration) -> Void = { _ in }
  ) -> Snapshot {
    var snapshot = DeliveryRig.snapshot()
    snapshot.namespaces[NamespaceName("shop")!] = nil
    for (name, url) in urls {
      var namespace = NamespaceConfiguration(
        name: NamespaceName(name)!,
        monitorList: [MonitoredType(ReportType("order")!), MonitoredType(ReportType("scan")!, isUploadPayload: true)])
      (namespace.url, namespace.keyId, namespace.maxItem) = (url, "main", 12)
      namespace.window = windows[name] ?? 16
      if url.hasPrefix("https") { namespace.tls.caFile = caFile }
      change(&namespace)
      snapshot.namespaces[namespace.name] = namespace
    }
    return snapshot
  }

  func ledger(_ namespace: String, _ kind: RowKind) async throws -> Ledger {
    try await engine.parts.store.status()[NamespaceName(namespace)!]?[kind]?.ledger ?? Ledger()
  }

  /// The state of delivery, for a test's message.
  var diagnosis: String {
    get async throws {
      var lines: [String] = []
      for (name, pipeline) in try await engine.pipelines.sorted(by: { $0.key < $1.key }) {
        let status = await pipeline.status
        for kind in RowKind.reports {
          let ledger = try await ledger(name.text, kind)
          lines.append("\(name) \(kind): \(ledger), next try in \(String(describing: status.nextTryIn))")
        }
        lines.append("  last failure: \(String(describing: status.lastFailure))")
      }
      return lines.joined(separator: "\n")
    }
  }

  /// Nothing is on its way, and nothing waits but what a proxy's 413 set back for ten minutes.
  func isSettled(_ namespaces: some Sequence<String>) async throws -> Bool {
    for namespace in namespaces {
      for kind in RowKind.reports {
        guard let queue = try await engine.parts.store.status()[NamespaceName(namespace)!]?[kind] else { continue }
        if queue.ledger[.waiting] > queue.setBack || queue.ledger[.claimed] > 0 { return false }
      }
    }
    return true
  }
}

/// Runs `body` with a rig that is gone afterwards, also after an error.
func withChaosRig(timeout: Duration = patience, _ body: (ChaosRig) async throws -> Void) async throws {
  let rig = try ChaosRig(timeout: timeout)
  do { try await body(rig) } catch {
    await rig.end()
    throw error
  }
  await rig.end()
}
