import PrismConfig
import PrismHTTP
import PrismProtocol

/// Answers the API about rollouts of remote configuration.
struct RolloutAPI {
  let api: PageAPI

  private static let historyMax = 50
  private static let groupBytesMax = 128

  /// The files that a rollout would begin with.
  func candidate(_ store: RemoteConfigurationStore) async throws(CollectorRefusal) -> JSONValue {
    let (entries, faults) = try await store.candidate()
    return ["namespaces": Self.described(entries), "faults": .array(faults.prefix(50).map { .string($0) })]
  }

  private static func described(_ entries: [RemoteNamespace]) -> JSONValue {
    .array(entries.map { ["namespace": .string($0.name.text), "entry": $0.json] })
  }

  /// null: no rollout is under way.
  func described(_ rollout: Rollout?, _ devices: DeviceRegister) async throws(CollectorRefusal) -> JSONValue {
    guard let rollout else { return .null }
    let counts = try await devices.counts(of: rollout)
    let members = [
      JSONValue.Member("beginTime", .int(rollout.begin)), JSONValue.Member("chosen", .int(counts.chosen)),
      JSONValue.Member("given", .int(counts.given)), JSONValue.Member("confirmed", .int(counts.confirmed)),
      JSONValue.Member("failed", .int(counts.failed)), JSONValue.Member("namespaces", Self.described(rollout.entries)),
    ]
    return .object((Self.described(rollout.event).object ?? []) + members)
  }

  private static func described(_ event: Rollout.Event) -> JSONValue {
    [
      "id": .int(event.rollout), "time": .int(event.time), "state": .string(event.state.rawValue),
      "percent": .int(event.reach.percent), "groups": .array(event.reach.groups.map { .string($0) }),
      "who": .string(event.who),
    ]
  }

  /// The newest changes of rollouts first.
  static func history(_ events: [Rollout.Event]) -> JSONValue {
    .array(events.suffix(historyMax).reversed().map { described($0) })
  }

  /// A device of the list with whether it got what is rolled out.
  static func marked(_ device: JSONValue, _ rollout: Rollout?) -> JSONValue {
    let isStaged = rollout?.marks(device["givenTime"]?.int.map { Int64($0) }) ?? false
    return .object((device.object ?? []) + [JSONValue.Member("staged", .bool(isStaged))])
  }

  // MARK: Changing

  private enum Action: String, CaseIterable { case start, widen, pause, resume, rollBack }

  /// `POST /configuration/rollout` with `{"action": …}`; `start` and `widen` take `percent` and `groups`.
  func changeRollout(_ request: PageRequest) async throws(CollectorRefusal) -> HTTPResponse {
    guard let remote = api.collector.remote else {
      throw CollectorRefusal(409, "this collector serves no remote configuration; remoteConfig names its folder")
    }
    let body = try PageAPI.body(request, known: ["action", "percent", "groups"])
    guard let action = body["action"]?.string.flatMap({ Action(rawValue: $0) }) else {
      let words = Action.allCases.map(\.rawValue).joined(separator: ", ")
      throw CollectorRefusal(400, "action: must be one of \(words)")
    }
    let change: RolloutChange
    switch action {
    case .start: change = .start(try Self.reach(body))
    case .widen: change = .widen(try Self.reach(body))
    case .pause: change = .pause
    case .resume: change = .resume
    case .rollBack: change = .rollBack
    }
    let rollout = try await remote.store.change(change, by: request.reader?.name ?? "")
    let reach = rollout.event.reach
    api.note(
      request.reader, did: "rollout: \(action.rawValue)",
      to: "\(rollout.id), \(rollout.event.state.rawValue), \(reach.percent) %, \(reach.groups.joined(separator: " "))",
      from: request.http)
    return PageAPI.json(try await described(rollout, remote.devices))
  }

  private static func reach(_ body: JSONValue) throws(CollectorRefusal) -> Rollout.Reach {
    guard let percent = body["percent"]?.int, (0...100).contains(percent) else {
      throw CollectorRefusal(400, "percent: must be a whole number from 0 to 100")
    }
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
    return Rollout.Reach(percent: percent, groups: groups)
  }
}
