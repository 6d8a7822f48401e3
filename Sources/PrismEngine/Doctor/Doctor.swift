import PrismBase
import PrismConfig
import PrismProtocol
import PrismStore

/// What only the daemon can look at for `prismctl doctor`: its database, and its collectors as it reaches them, with its
/// own user, sandbox and CA files.
struct Doctor: Sendable {
  static let probeTimeout: Duration = .seconds(10)
  /// Collectors that are probed at one time.
  static let probesMax = 8
  /// Further apart than this, stamps of reports are of little use.
  static let clockSkewMax: Duration = .seconds(60)

  let engine: Engine
  let process: ProcessFigures

  func findings() async -> [Finding] {
    let database = await database()
    return [database, descriptors] + (await held()) + (await collectors())
  }

  private func database() async -> Finding {
    if let obstacle = engine.obstacle {
      return Finding("database", .fault, obstacle, advice: "free space or mend the disk; prismd goes on by itself")
    }
    do {
      let faults = try await engine.parts.store.check()
      guard let first = faults.first else { return Finding("database", .ok, "every page of it is sound") }
      return Finding(
        "database", .fault, "it is damaged: \(first)",
        advice: "restart prismd: it sets the file aside and brings over what can be read")
    } catch {
      return Finding("database", .fault, "it can't be read: \(error)", advice: "look after the disk of `state`")
    }
  }

  /// A tenth is kept for what comes at once.
  private var descriptors: Finding {
    let (open, limit) = (process.openDescriptors, process.descriptorsMax)
    let wanted = engine.hub.current.daemon.ingest.maxConnections + 64
    if open * 10 > limit * 9 {
      return Finding(
        "descriptors", .fault, "\(open) of \(limit) are open", advice: "raise LimitNOFILE= to \(wanted) or more")
    }
    if limit < wanted {
      return Finding(
        "descriptors", .warning, "\(limit) are allowed, too few for ingest.maxConnections",
        advice: "raise LimitNOFILE= to \(wanted), or lower ingest.maxConnections")
    }
    return Finding("descriptors", .ok, "\(open) of \(limit) are open")
  }

  // MARK: Collectors

  /// The namespaces that only an operator can get going again.
  private func held() async -> [Finding] {
    var findings: [Finding] = []
    for (namespace, pipeline) in await engine.pipelines.sorted(by: { $0.key < $1.key }) {
      guard let failure = await pipeline.status.heldBy else { continue }
      let keyID = engine.hub.current.namespaces[namespace]?.keyId ?? ""
      findings.append(
        Finding("delivery \(namespace)", .fault, failure.cause, advice: Self.advice(failure, keyID: keyID)))
    }
    return findings
  }

  private static func advice(_ failure: RetryRecord.Failure, keyID: String) -> String {
    let then = "then `prismctl reload`, which tries at once"
    switch failure.code {
    case .decryptionFailed, .macMismatch, .keyLength:
      return "the key `\(keyID)` here and the collector's of that id differ: give both the same file, \(then)"
    case .unknownKey: return "give the collector the key `\(keyID)`, or set keyId to one that it has, \(then)"
    case .token: return "set tokenFile to a token that the collector accepts, \(then)"
    case .version: return "use a collector of this daemon's version, \(then)"
    default: return "look at the url, and at proxies before the collector, \(then)"
    }
  }

  private func collectors() async -> [Finding] {
    let namespaces = engine.hub.current.namespaces.values.filter { $0.url != nil }.sorted { $0.name < $1.name }
    let places = Dictionary(grouping: namespaces) { Place(url: $0.url ?? "", files: $0.tls) }
    var findings: [Finding] = []
    await withTaskGroup(of: [Finding].self) { group in
      for (index, (place, namespaces)) in places.enumerated() {
        if index >= Self.probesMax, let done = await group.next() { findings += done }
        let (names, first) = (namespaces.map(\.name.text).joined(separator: ", "), namespaces[0])
        group.addTask { await probe(place.url, first.tls, isPlain: first.isPlain, names) }
      }
      for await done in group { findings += done }
    }
    return findings.sorted { $0.check < $1.check }
  }

  private struct Place: Hashable {
    let url: String
    let caFile: String?, certFile: String?
    init(url: String, files: NamespaceConfiguration.TLS) {
      (self.url, caFile, certFile) = (url, files.caFile?.path, files.certFile?.path)
    }
  }

  /// Asks for nothing but an answer (HEAD): name, route, TLS and the other clock are seen, and nothing is changed.
  private func probe(
    _ url: String, _ tls: NamespaceConfiguration.TLS, isPlain: Bool, _ namespaces: String
  ) async -> [Finding] {
    var request = UploadRequest(
      url: url, headers: [], body: [], connectTimeout: Self.probeTimeout, timeout: Self.probeTimeout)
    (request.method, request.tls) = (.head, tls)
    let answer = await engine.parts.transport.post(request)
    let check = "url \(namespaces)"
    let plain =
      isPlain
      ? [
        Finding(
          check, .warning, "\(url) is not encrypted by TLS: tokens and device ids can be read on the way",
          advice: "use an https url")
      ]
      : []
    switch answer.outcome {
    case .response(let status, let headers, _):
      let found = Finding(check, .ok, "\(url) answers (\(status) to a probe without a packet)")
      return [found] + plain + [headers["date"].flatMap { clock($0, url) }].compactMap { $0 }
    case .failure(let failure, let detail):
      return [Finding(check, .fault, "\(url): \(detail)", advice: Self.advice(failure))] + plain
    }
  }

  /// nil where the two clocks agree.
  private func clock(_ date: String, _ url: String) -> Finding? {
    let now = engine.parts.time.unixMilliseconds
    guard let other = HTTPDate.unixMilliseconds(date, now: now) else { return nil }
    let ahead = (now - other) / 1000
    guard abs(ahead) > Self.clockSkewMax.components.seconds else { return nil }
    return Finding(
      "clock", .warning, "this machine's is \(abs(ahead)) s \(ahead > 0 ? "ahead of" : "behind") that of \(url)",
      advice: "find out which one is wrong: `timedatectl` tells whether this one is kept by NTP")
  }

  private static func advice(_ failure: UploadAnswer.Failure) -> String {
    switch failure {
    case .resolve: "look at the url's host name, and at the name servers (`resolvectl query HOST`)"
    case .connect: "look whether the collector listens there, and at firewalls between"
    case .tls:
      "does the port speak TLS? Then look at the certificates: tls.caFile must hold the authority of the collector's, "
        + "and all be in date"
    case .timeout: "packets are lost on the way, or the collector is overloaded"
    case .reset, .badResponse: "what listens there does not speak HTTP as a collector does: look at the url's port"
    case .cancelled: "ask again"
    case .local: "look at the files that the namespace's tls keys name"
    }
  }
}
