import PrismProtocol
import Testing

extension Harness {
  /// The rows of a namespace and kind in an account, by `prismctl status --json`.
  static func rows(_ status: JSONValue, _ namespace: String, _ kind: String, _ account: String) -> Int {
    status["namespaces"]?[namespace]?[kind]?["ledger"]?[account]?.int ?? 0
  }

  /// `stored = waiting + claimed + delivered + …` for every namespace and kind.
  static func expectIdentity(_ status: JSONValue) {
    for namespace in status["namespaces"]?.object ?? [] {
      for kind in ["meta", "payload"] {
        let ledger = namespace.value[kind]?["ledger"]?.object ?? []
        let stored = ledger.first { $0.key == "stored" }?.value.int
        let accounts = ledger.filter { $0.key != "stored" }.reduce(0) { $0 + ($1.value.int ?? 0) }
        #expect(stored == accounts, "\(namespace.key) \(kind)")
      }
    }
  }

  /// Waits until nothing of these namespaces waits or is on its way, but what a proxy's 413 set back for ten minutes.
  func waitUntilSent(_ namespaces: [String]) async throws {
    try await waitUntil("everything of \(namespaces) is sent") {
      let status = try await self.status()
      return namespaces.allSatisfy { namespace in
        ["meta", "payload"].allSatisfy { kind in
          let setBack = status["namespaces"]?[namespace]?[kind]?["setBack"]?.int ?? 0
          return Self.rows(status, namespace, kind, "waiting") == setBack
            && Self.rows(status, namespace, kind, "claimed") == 0
        }
      }
    }
  }
}
