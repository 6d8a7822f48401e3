import PrismBase
import PrismHTTP
import PrismProtocol

/// Answers the API about crashes, grouped by their fingerprint.
struct CrashAPI {
  let api: PageAPI

  private var collector: Collector { api.collector }

  /// The words of `state`: conditions, and those that need somebody.
  private enum Wanted: String, CaseIterable {
    case open, resolved, ignored, regressed, unresolved

    func includes(_ condition: CrashState.Condition) -> Bool {
      self == .unresolved ? [.open, .regressed].contains(condition) : rawValue == condition.rawValue
    }
  }

  private static let fortnight: Int64 = 14 * 86_400_000

  private func crashIndex() async throws(CollectorRefusal) -> (index: CrashIndex, isWhole: Bool) {
    let (index, store, time) = (collector.access.page.crashes, collector.store, collector.time)
    let isWhole = try await api.ask { () throws(StoreFailure) in try await index.refresh(store, time: time) }
    return (index, isWhole)
  }

  /// The states by fingerprint, once those of resolved groups that came again are noted.
  private func states(_ groups: [String: CrashGroup]) async throws(CollectorRefusal) -> [String: CrashState] {
    let watch = CrashWatch(collector)
    return try await api.ask { () throws(StoreFailure) in try await watch.states(groups) }
  }

  private static func described(_ group: JSONValue, _ state: CrashState?) -> JSONValue {
    let members = [
      JSONValue.Member("state", .string((state?.condition ?? .open).rawValue)),
      JSONValue.Member("change", state?.json ?? .null),
      JSONValue.Member("assignee", state?.facts.assignee?.json ?? .null),
      JSONValue.Member("link", state?.facts.link?.json ?? .null),
    ]
    return .object((group.object ?? []) + members)
  }

  /// `GET /crashes`: the groups with a crash since `since` (14 days), those with the newest first.
  func crashes(_ request: PageRequest) async throws(CollectorRefusal) -> HTTPResponse {
    let now = collector.time.unixMilliseconds
    let since = try request.number("since", in: 0...Int64.max) ?? now - Self.fortnight
    let limit = try request.number("limit", in: 1...1000) ?? 200
    let wanted = try request.word("state", Wanted.self)
    let (namespace, device) = (request.http.parameter("namespace") ?? "", request.http.parameter("device") ?? "")
    let (index, isWhole) = try await crashIndex()
    let all = await index.groups
    let states = try await states(all)
    let groups = all.values.filter { group in
      group.lastTime >= since && (namespace.isEmpty || group.namespaces.contains(namespace))
        && (device.isEmpty || group.devices[device] != nil)
        && wanted?.includes(states[group.fingerprint]?.condition ?? .open) != false
    }.sorted { ($1.lastTime, $0.fingerprint) < ($0.lastTime, $1.fingerprint) }
    return PageAPI.json([
      "since": .int(since), "until": .int(now), "isWhole": .bool(isWhole), "leftOut": .int(await index.leftOut),
      "total": .int(groups.count),
      "groups": .array(
        groups.prefix(limit).map {
          Self.described($0.summary(since: since, until: now + 1, buckets: 30), states[$0.fingerprint])
        }),
    ])
  }

  /// - Returns: nil for the newest crash of all that are read: there are more.
  private func group(_ request: PageRequest) async throws(CollectorRefusal) -> (group: CrashGroup, newest: Int64?) {
    let (index, isWhole) = try await crashIndex()
    guard let group = await index.groups[request.parts.first ?? ""] else {
      let reason = isWhole ? "" : "; not all crashes are read yet, try again"
      throw CollectorRefusal(404, "there is no group of crashes with this fingerprint\(reason)")
    }
    return (group, isWhole ? await index.cursor : nil)
  }

  /// `GET /crashes/{fingerprint}`
  func crash(_ request: PageRequest) async throws(CollectorRefusal) -> HTTPResponse {
    let now = collector.time.unixMilliseconds
    let group = try await group(request).group
    let state = try await states([group.fingerprint: group])[group.fingerprint]
    let details = group.details(since: now - Self.fortnight, until: now + 1)
    let members = (details.object ?? []).map { member in
      member.key == "group" ? JSONValue.Member("group", Self.described(member.value, state)) : member
    }
    let comments = JSONValue.array((state?.facts.comments ?? []).map(\.json))
    return PageAPI.json(.object(members + [.init("comments", comments)]))
  }

  // MARK: Changing

  /// `POST /crashes/{fingerprint}/state` with the members of `CrashChange`.
  func changeCrash(_ request: PageRequest) async throws(CollectorRefusal) -> HTTPResponse {
    let now = collector.time.unixMilliseconds
    let change = try CrashChange(PageAPI.body(request, known: CrashChange.members), now: now)
    let (group, newest) = try await group(request)
    guard let newest else {
      throw CollectorRefusal(503, "not all crashes are read yet; try again", retryAfterSeconds: 1)
    }
    let state = change.state(
      of: group, before: try await states([group.fingerprint: group])[group.fingerprint], newest: newest,
      by: request.reader?.name ?? "", at: now)
    let store = collector.access.page.crashStates
    try await api.ask { () throws(StoreFailure) in try await store.put(state) }
    let build = change.build.map { " in " + $0 } ?? ""
    api.note(request.reader, did: change.deed, to: group.fingerprint + build, from: request.http)
    return PageAPI.json(Self.described(.object([.init("fingerprint", .string(group.fingerprint))]), state))
  }
}
