import PrismConfig
import PrismHTTP
import PrismPacket
import PrismProtocol

// Remote configuration: `GET /prism/config`.
extension Collector {
  func configuration(_ request: HTTPRequest) async throws(CollectorRefusal) -> HTTPResponse {
    try await access.checkSender(request)
    guard let remote else {
      throw CollectorRefusal(404, "remote configuration is not served here; --remote-config names its folder")
    }
    do throws(CollectorRefusal) {
      let question = try ConfigurationQuestion(request)
      try await devices.standings.check(question.deviceID)
      let chosen = await remote.choices.choice(for: remote.store.rollouts.active, of: self)
      let answer = try await remote.store.answer(to: question.deviceID, since: question.updateTime, among: chosen)
      // Without a token or a certificate anybody could make rows and log lines of any device's.
      if access.senders != nil || options.tls?.clientAuthorities != nil {
        let isProven = await openers.keys.prove(question, request)
        await remote.devices.asked(question.shown, isProven: isProven, given: answer.updateTime)
      }
      counts.count(.questions, answer.outcome)
      let store = String(try await remote.store.current().store)
      return HTTPResponse(
        status: 200, headers: [("Content-Type", "application/json"), (RemoteDocument.storeHeader, store)],
        body: answer.body)
    } catch {
      counts.count(.questions, "refused_\(error.status)")
      throw error
    }
  }

  /// Of packets' answers: the version of the configuration that there is, so that who has an older one asks.
  func versionHeaders() async -> [(name: String, value: String)] {
    guard let remote else { return [] }
    return await remote.store.version().map { [("Prism-Config-Version", String($0))] } ?? []
  }

  /// Updates the figures of remote configuration, beside the counts.
  func refreshGauges() async {
    guard let remote else { return }
    // Figures that can't be read stay as they are.
    guard let version = await remote.store.version(), let known = try? await remote.devices.figures() else { return }
    counts.set(
      .init(version: version, faults: await remote.store.faults, devices: known.devices, failed: known.failed))
  }
}
