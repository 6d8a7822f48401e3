import PrismHTTP
import PrismProtocol

private enum Flag: String, CaseIterable { case `true`, `false` }

// Remote configuration: what is served, and who has it.
extension PageAPI {
  func configurationSummary() async -> JSONValue {
    guard let remote = collector.remote, let version = await remote.store.version(),
      let known = try? await remote.devices.figures()
    else { return .null }
    return [
      "version": .int(version), "faults": .int(await remote.store.faults), "devices": .int(known.devices),
      "failed": .int(known.failed),
    ]
  }

  /// `GET /configuration`
  func configuration(_ request: PageRequest) async throws(CollectorRefusal) -> HTTPResponse {
    let limit = try request.number("limit", in: 1...1000) ?? 100
    let failedOnly = try request.word("failed", Flag.self) == .true
    guard let remote = collector.remote else {
      return Self.json([
        "served": false, "summary": .null, "namespaces": [], "versions": [], "devices": [], "next": .null,
        "candidate": .null, "rollout": .null, "history": [],
      ])
    }
    let page = try await remote.devices.page(
      after: request.http.parameter("after") ?? "", failedOnly: failedOnly, limit: limit)
    let active = await remote.store.rollouts.active
    let rollouts = RolloutAPI(api: self)
    let described = try await rollouts.described(active, remote.devices)
    return Self.json([
      "served": true, "candidate": try await rollouts.candidate(remote.store), "rollout": described,
      "history": RolloutAPI.history(await remote.store.rollouts.events), "summary": await configurationSummary(),
      "namespaces": .array(try await remote.store.served()), "versions": .array(try await remote.devices.versions()),
      "devices": .array(page.map { RolloutAPI.marked($0, active) }),
      "next": page.count == limit ? page.last?["device"] ?? .null : .null,
    ])
  }
}
