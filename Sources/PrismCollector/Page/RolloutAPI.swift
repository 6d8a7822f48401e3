import PrismConfig
import PrismHTTP
import PrismProtocol

/// Answers the API about rollouts of remote configuration.
struct RolloutAPI: PageAnswers {
  let api: PageAPI

  private enum Flag: String, CaseIterable { case `true`, `false` }

  private static let historyMax = 50
  private static let groupBytesMax = 128

  /// null: no configuration is served, or it can't be read.
  func summary() async -> JSONValue {
    guard let remote = api.collector.remote, let version = await remote.store.version(),
      let known = try? await remote.devices.figures()
    else { return .null }
    return JSONValue([
      "version": version, "faults": await remote.store.faults, "devices": known.devices, "failed": known.failed,
    ])
  }

  /// `GET /configuration`
  func configuration(_ request: PageRequest) async throws(CollectorRefusal) -> HTTPResponse {
    let (devices, isFull) = try await page(request)
    guard let remote = api.collector.remote else {
      return PageAPI.json(of: [
        "served": false, "summary": .null, "namespaces": [], "versions": [], "devices": [], "next": .null,
        "candidate": .null, "rollout": .null, "history": [],
      ])
    }
    let active = await remote.store.rollouts.active
    return PageAPI.json([
      "served": true, "candidate": try await candidate(remote.store),
      "rollout": try await described(active, remote.devices),
      "history": await remote.store.rollouts.events.suffix(Self.historyMax).reversed().map { Self.described($0) },
      "summary": await summary(), "namespaces": try await remote.store.served(),
      "versions": try await remote.devices.versions(), "devices": devices.map { Self.marked($0, active) },
      "next": isFull ? devices.last?["device"] : nil,
    ])
  }

  /// The plain `GET /devices`: what devices said of their configuration.
  func devices(_ request: PageRequest) async throws(CollectorRefusal) -> HTTPResponse {
    let devices = try await page(request).devices
    return PageAPI.json(["devices": devices, "next": devices.last?["device"]])
  }

  private func page(_ request: PageRequest) async throws(CollectorRefusal) -> (devices: [JSONValue], isFull: Bool) {
    let limit = try request.number("limit", in: 1...1000) ?? 100
    let failedOnly = try request.word("failed", Flag.self) == .true
    let devices = try await api.collector.remote?.devices.page(
      after: request.http.parameter("after") ?? "", failedOnly: failedOnly, limit: limit)
    return (devices ?? [], devices?.count == limit)
  }

  /// The files that a rollout would begin with.
  private func candidate(_ store: RemoteConfigurationStore) async throws(CollectorRefusal) -> JSONValue {
    let (entries, faults) = try await store.candidate()
    return JSONValue(["namespaces": Self.described(entries), "faults": Array(faults.prefix(50))])
  }

  private static func described(_ entries: [RemoteNamespace]) -> [JSONValue] {
    entries.map { JSONValue(["namespace": $0.name.text, "entry": $0.json]) }
  }

  /// null: no rollout is under way.
  private func described(_ rollout: Rollout?, _ devices: DeviceRegister) async throws(CollectorRefusal) -> JSONValue {
    guard let rollout else { return .null }
    let chosen = await api.collector.remote?.choices.choice(for: rollout, of: api.collector)
    let counts = try await devices.counts(of: rollout, among: chosen)
    return Self.described(rollout.event).adding([
      "guard": await api.collector.remote?.guards.json(of: rollout) ?? .null, "beginTime": rollout.begin,
      "chosen": counts.chosen, "given": counts.given, "confirmed": counts.confirmed,
      "failed": counts.failed, "namespaces": Self.described(rollout.entries),
    ])
  }

  private static func described(_ event: Rollout.Event) -> JSONValue {
    JSONValue([
      "id": event.rollout, "time": event.time, "state": event.state.rawValue, "percent": event.reach.percent,
      "groups": event.reach.groups, "where": event.reach.expression, "who": event.who,
    ])
  }

  /// A device of the list with whether it got what is rolled out.
  private static func marked(_ device: JSONValue, _ rollout: Rollout?) -> JSONValue {
    device.adding(["staged": rollout?.marks(device["givenTime"]?.int.map { Int64($0) }) ?? false])
  }

  // MARK: Changing

  /// `POST /configuration/rollout` with `{"action": …}`; `start` and `widen` take `percent`, `groups` and `where`, `start` a `guard`.
  func changeRollout(_ request: PageRequest) async throws(CollectorRefusal) -> HTTPResponse {
    guard let remote = api.collector.remote else {
      throw CollectorRefusal(409, "this collector serves no remote configuration; remoteConfig names its folder")
    }
    let body = try PageAPI.body(
      request,
      known: [
        "action": .text, "percent": .number, "groups": .list, "where": .text, "guard": .object,
      ])
    let (action, change): (String, RolloutChange) = (body["action"]?.string ?? "", try Self.change(body))
    let rollout = try await remote.store.change(change, by: request.reader?.name ?? "")
    api.note(
      request, did: "rollout: \(action)",
      to: "\(rollout.id), \(rollout.event.state.rawValue), \(rollout.event.reach.text)")
    return PageAPI.json(of: try await described(rollout, remote.devices))
  }

  private static func change(_ body: JSONValue) throws(CollectorRefusal) -> RolloutChange {
    let reaching = ["start", "widen"]
    for (member, actions) in [("guard", ["start"]), ("percent", reaching), ("groups", reaching), ("where", reaching)]
    where body[member] ?? .null != .null && !actions.contains(body["action"]?.string ?? "") {
      throw CollectorRefusal(400, "\(member): belongs to the action \(actions.joined(separator: " or "))")
    }
    let rule = body["guard"] ?? .null
    return switch body["action"]?.string {
    case "start": .start(try reach(body, try percent(body)), rule == .null ? nil : try RolloutGuard(rule))
    case "widen": try widening(body)
    case "pause": .pause
    case "resume": .resume
    case "rollBack": .rollBack
    default: throw CollectorRefusal(400, "action: must be one of start, widen, pause, resume, rollBack")
    }
  }

  /// `percent` and `where` stay as they are where they are missing.
  private static func widening(_ body: JSONValue) throws(CollectorRefusal) -> RolloutChange {
    guard ["percent", "groups", "where"].contains(where: { body[$0] ?? .null != .null }) else {
      throw CollectorRefusal(400, "widen: needs a larger percent, more groups, or another where")
    }
    let percent = body["percent"] ?? .null == .null ? nil : try percent(body)
    return .widen(percent: percent, try reach(body, 0))
  }

  private static func percent(_ body: JSONValue) throws(CollectorRefusal) -> Int {
    guard let percent = body["percent"]?.int, (0...100).contains(percent) else {
      throw CollectorRefusal(400, "percent: must be a whole number from 0 to 100")
    }
    return percent
  }

  private static func reach(_ body: JSONValue, _ percent: Int) throws(CollectorRefusal) -> Rollout.Reach {
    var groups: [String] = []
    for value in body["groups"]?.array ?? [] {
      guard let text = value.string, (1...groupBytesMax).contains(text.utf8.count),
        text.utf8.allSatisfy({ (UInt8(ascii: "!")...UInt8(ascii: "~")).contains($0) })
      else {
        throw CollectorRefusal(
          400,
          "groups: must be ids of devices, 1 to \(groupBytesMax) visible ASCII characters, in which * is any characters"
        )
      }
      if !groups.contains(text) { groups.append(text) }
    }
    guard groups.count <= Rollout.Reach.groupsMax else {
      throw CollectorRefusal(400, "groups: has \(groups.count), must have at most \(Rollout.Reach.groupsMax)")
    }
    let expression = body["where"]?.string
    guard expression != nil || body["where"] ?? .null == .null else {
      throw CollectorRefusal(400, "where: must be an expression that chooses devices, as a text")
    }
    if let expression, expression != "" { _ = try DeviceExpression.asked(expression) }
    return Rollout.Reach(percent: percent, groups: groups, expression: expression)
  }
}
