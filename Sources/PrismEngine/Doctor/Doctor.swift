import PrismBase
import PrismConfig
import PrismControl
import PrismPacket
import PrismProtocol
import PrismStore

/// The checks of `prismctl doctor` that only the daemon can do: of its database, and of its collectors as it reaches
/// them, with its own user, sandbox and CA files.
struct Doctor: Sendable {
  static let probeTimeout: Duration = .seconds(10)
  /// Collectors that are probed at one time.
  static let probesMax = 8
  /// Further apart than this, stamps of reports are of little use.
  static let clockSkewMax: Duration = .seconds(60)

  let engine: Engine
  let process: ProcessFigures

  func findings() async -> [Finding] {
    let (database, collectors) = (await database(), await collectors())
    return [database, descriptors] + keys + gone + (await held(besides: collectors)) + collectors
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
        "descriptors", .fault, "\(open) of \(limit) are open",
        advice: "raise LimitNOFILE= to \(wanted) or more (`systemctl edit prismd`), then restart prismd")
    }
    if limit < wanted {
      return Finding(
        "descriptors", .warning, "\(limit) are allowed, too few for ingest.maxConnections",
        advice: "raise LimitNOFILE= to \(wanted), or lower ingest.maxConnections")
    }
    return Finding("descriptors", .ok, "\(open) of \(limit) are open")
  }

  /// Namespaces that a start would not find any more.
  private var gone: [Finding] {
    engine.hub.current.namespaces.values.filter(\.isFileGone).map(\.name).sorted().map { name in
      Finding(
        "namespace \(name)", .warning, "its file is gone: it stays as it was, and is retired at the next start",
        advice: "write the file again, or one that says `retired: true`")
    }
  }

  private var keys: [Finding] {
    engine.keyReports.compactMap { key, report in
      guard report.isHalfUsed else { return nil }
      let isUsedUp = engine.parts.keys.isUsedUp(key.fingerprint)
      let text =
        isUsedUp
        ? KeyUse.usedUpText(id: key.id, blocksMax: report.blocksMax)
        : "it has encrypted \(report.blocks) of the \(report.blocksMax) blocks that one key may encrypt"
      return Finding("key \(key.id)", isUsedUp ? .fault : .warning, text, advice: KeyUse.advice(id: key.id))
    }
  }

  // MARK: Collectors

  /// The namespaces that only an operator can get going again, if no probe found why.
  private func held(besides collectors: [Finding]) async -> [Finding] {
    var findings: [Finding] = []
    let explained = Set(collectors.filter { $0.result == .fault }.flatMap(\.namespaces))
    for (namespace, pipeline) in await engine.pipelines.sorted(by: { $0.key < $1.key }) {
      // Of a namespace that is not configured any more prismctl tells by its rows.
      guard !explained.contains(namespace.text), let configuration = engine.hub.current.namespaces[namespace],
        let failure = await pipeline.status.heldBy, !(await pipeline.hasUsedUpKey)
      else { continue }
      let settings = PipelineSettings(
        namespace: namespace, snapshot: engine.hub.current, automaticDeviceID: engine.automaticDeviceID)
      findings.append(
        Finding("delivery \(namespace)", .fault, failure.cause, advice: Self.advice(failure, configuration, settings)))
    }
    return findings
  }

  private static func advice(
    _ failure: RetryRecord.Failure, _ configuration: NamespaceConfiguration, _ settings: PipelineSettings
  ) -> String {
    let (keyID, then) = (configuration.keyId ?? "", Self.then(nil))
    switch failure.code {
    case .decryptionFailed, .macMismatch, .keyLength:
      return "the key `\(keyID)` here and the collector's of that id differ: \(sameKey(settings.key?.file))"
    case .unknownKey: return otherKey(keyID)
    case .token: return token(configuration.token?.path)
    case .revoked:
      return "ask why; `prism-collector device restore \(settings.deviceID)` at the collector takes it back, \(then)"
    case .version: return "use a collector of this daemon's version, \(then)"
    case nil where failure.cause.contains("certificate"): return certificate(configuration.tls.certFile?.path)
    case nil where failure.status.map(ResponseClass.refusals.contains) == true:
      return "mend the proxy before the collector, whose log has that answer, or update an older collector; for a "
        + "receiver of your own that makes no proofs, set `trustRefusals: true`; \(then)"
    default: return "look at the url, and at proxies before the collector, \(then)"
    }
  }

  /// The last step of an advice. - Parameter file: that is to change; systemd hands a unit copies of its credentials at its start.
  static func then(_ file: String?) -> String {
    file?.hasPrefix("/run/credentials/") == true
      ? "then `systemctl restart prismd`: it has a copy from its start" : "then `prismctl reload`, which tries at once"
  }

  static func otherKey(_ id: String) -> String {
    "give the collector the key `\(id)` and restart it, or set keyId to one that it has, \(then(nil))"
  }

  static func token(_ file: String?) -> String {
    "let authorization.tokenFile name a file with a token that the collector accepts, \(then(file))"
  }

  static func sameKey(_ file: String?) -> String {
    "give both the same file and restart the collector, which reads its keys at its start, \(then(file))"
  }

  static func certificate(_ file: String?) -> String {
    "let tls.certFile and tls.keyFile name a certificate in date, signed by an authority of the collector's "
      + "tls.clientCAFile, \(then(file))"
  }

  private func collectors() async -> [Finding] {
    let probes = await probes()
    var findings: [[Finding]] = []
    await withTaskGroup(of: [Finding].self) { group in
      for (index, probe) in probes.enumerated() {
        if index >= Self.probesMax, let done = await group.next() { findings.append(done) }
        group.addTask { await ask(probe) }
      }
      for await done in group { findings.append(done) }
    }
    return findings.sorted { ($0.first?.check ?? "") < ($1.first?.check ?? "") }.flatMap { $0 }
  }

  /// One for the namespaces that share a url, a key, a token and certificates.
  private func probes() async -> [CollectorProbe] {
    var groups: [[String?]: (settings: [PipelineSettings], isProven: Bool)] = [:]
    let (snapshot, pipelines, network) = (engine.hub.current, await engine.pipelines, engine.parts.network.current)
    for (name, configuration) in snapshot.namespaces.sorted(by: { $0.key < $1.key }) where configuration.url != nil {
      let settings = PipelineSettings(
        namespace: name, snapshot: snapshot, automaticDeviceID: engine.automaticDeviceID)
      let status = await pipelines[name]?.status
      let isProven = status.map { $0.provenURL == configuration.url && $0.hasProof } ?? false
      let (tls, token) = (configuration.tls, configuration.token?.path)
      let place = [configuration.url, configuration.keyId, token, tls.caFile?.path, tls.certFile?.path]
      groups[place, default: ([], false)].settings.append(settings)
      if isProven { groups[place]?.isProven = true }
    }
    return groups.values.compactMap { group in
      guard let first = group.settings.first, let configuration = first.configuration else { return nil }
      return CollectorProbe(
        url: configuration.url ?? "", namespaces: group.settings.map(\.namespace), deviceID: first.deviceID,
        key: first.key, token: configuration.token, tls: configuration.tls, isProven: group.isProven,
        offline: network.kind == .none && first.collector?.isLoopback != true ? network.reason : nil)
    }
  }

  /// Name, route, TLS, key, token, versions and the other clock are seen, and nothing is stored.
  private func ask(_ probe: CollectorProbe) async -> [Finding] {
    let isPlain = probe.namespaces.contains { engine.hub.current.namespaces[$0]?.isPlain == true }
    let plain =
      isPlain
      ? [
        Finding(
          "url \(probe.names)", .warning,
          "\(probe.url) is not encrypted by TLS: tokens and device ids can be read on the way",
          advice: "use an https url")
      ]
      : []
    do throws(PacketError) {
      let (question, request) = try probe.request(now: engine.parts.time.unixMilliseconds, timeout: Self.probeTimeout)
      let answer = await engine.transport.post(request)
      return probe.findings(answer.outcome, to: question, now: engine.parts.time.unixMilliseconds) + plain
    } catch { return [Finding("url \(probe.names)", .skipped, "no probe can be made: \(error.rawValue)")] + plain }
  }
}
