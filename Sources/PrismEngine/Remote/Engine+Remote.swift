import PrismConfig
import PrismProtocol
import PrismStore

// The facts by which probation is judged.
extension Engine {
  /// Namespaces that `change` configures otherwise, and whose packets were accepted at some time.
  func proven(among change: ConfigurationChange) async -> Set<NamespaceName> {
    var result: Set<NamespaceName> = []
    for (name, new) in change.new.namespaces {
      guard let old = change.old.namespaces[name], old != new else { continue }
      for kind in RowKind.all {
        // A store that can't be read: then nothing is known of it, and nothing will be taken back.
        if (try? await parts.store.lastAccepted(name, kind)) != nil { result.insert(name) }
      }
    }
    return result
  }

  func samples(of names: [NamespaceName]) async -> [NamespaceName: RemoteState.Sample] {
    var result: [NamespaceName: RemoteState.Sample] = [:]
    for name in names { result[name] = await pipelines[name]?.sample }
    return result
  }
}

extension NamespacePipeline {
  var sample: RemoteState.Sample {
    let isTrying = RowKind.all.contains { kind in
      switch deliveries[kind].upload {
      case .draining: true
      case .paused(let pause): pause.reason != .store && gates(kind).mayTry
      case .idle, .stopped: false
      }
    }
    return RemoteState.Sample(isProven: proof.isProven, isTrying: isTrying)
  }
}
