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
  private static let trendBuckets = 28

  /// Groups what came, and has the states by fingerprint, once what crashes changed is noted.
  private struct Groups {
    let all: [String: CrashGroup], states: [String: CrashState]
    /// The newest crash; nil: there are more to read.
    let newest: Int64?
    let leftOut: Int
  }

  private func groups() async throws(CollectorRefusal) -> Groups {
    let (watch, index) = (CrashWatch(collector), collector.access.page.crashes)
    return try await api.ask { () throws(StoreFailure) in
      let (isWhole, states) = try await watch.refresh()
      let (all, newest) = (await index.groups, await index.cursor)
      return Groups(
        all: all, states: try await watch.states(all, of: states), newest: isWhole ? newest : nil,
        leftOut: await index.leftOut)
    }
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
    let until = min(try request.number("until", in: 0...Int64.max) ?? .max, now + 1)
    let limit = try request.number("limit", in: 1...1000) ?? 200
    let wanted = try request.word("state", Wanted.self)
    let (namespace, device) = (request.http.parameter("namespace") ?? "", request.http.parameter("device") ?? "")
    let found = try await self.groups()
    let groups = found.all.values.filter { group in
      group.lastTime >= since && group.firstTime < until && (namespace.isEmpty || group.namespaces.contains(namespace))
        && (device.isEmpty || group.devices[device] != nil)
        && wanted?.includes(found.states[group.fingerprint]?.condition ?? .open) != false
        && group.count(since: since, until: until) > 0
    }.sorted { ($1.lastTime, $0.fingerprint) < ($0.lastTime, $1.fingerprint) }
    return PageAPI.json([
      "since": .int(since), "until": .int(min(until, now)), "isWhole": .bool(found.newest != nil),
      "leftOut": .int(found.leftOut),
      "total": .int(groups.count),
      "count": .int(groups.reduce(0) { $0 + $1.count(since: since, until: until) }),
      "groups": .array(
        groups.prefix(limit).map {
          let device = device.isEmpty ? nil : device
          return Self.described(
            $0.summary(since: since, until: until, buckets: Self.trendBuckets, device: device),
            found.states[$0.fingerprint])
        }),
    ])
  }

  private static func group(_ fingerprint: String, in found: Groups) throws(CollectorRefusal) -> CrashGroup {
    if let group = found.all[fingerprint] { return group }
    let reason = found.newest == nil ? "; not all crashes are read yet, try again" : ""
    throw CollectorRefusal(404, "there is no group of crashes with this fingerprint\(reason)")
  }

  /// `GET /crashes/{fingerprint}`
  func crash(_ request: PageRequest) async throws(CollectorRefusal) -> HTTPResponse {
    let now = collector.time.unixMilliseconds
    let found = try await groups()
    let group = try Self.group(request.parts.first ?? "", in: found)
    let state = found.states[group.fingerprint]
    let details = group.details(since: now - Self.fortnight, until: now + 1, buckets: Self.trendBuckets)
    let members = (details.object ?? []).map { member in
      member.key == "group" ? JSONValue.Member("group", Self.described(member.value, state)) : member
    }
    let comments = JSONValue.array((state?.facts.comments ?? []).map(\.json))
    let trendEnd = (now / CrashGroup.hour + 1) * CrashGroup.hour
    return PageAPI.json(.object(members + [.init("comments", comments), .init("trendEnd", .int(trendEnd))]))
  }

  // MARK: Changing

  private static func newest(_ found: Groups) throws(CollectorRefusal) -> Int64 {
    guard let newest = found.newest else {
      throw CollectorRefusal(503, "not all crashes are read yet; try again", retryAfterSeconds: 1)
    }
    return newest
  }

  private func put(_ state: CrashState, _ deed: String, _ request: PageRequest) async throws(CollectorRefusal) {
    let store = collector.access.page.crashStates
    try await api.ask { () throws(StoreFailure) in try await store.put(state) }
    api.note(request.reader, did: deed, to: state.fingerprint, from: request.http)
  }

  /// `POST /crashes/{fingerprint}/state` with the members of `CrashChange`.
  func changeCrash(_ request: PageRequest) async throws(CollectorRefusal) -> HTTPResponse {
    let now = collector.time.unixMilliseconds
    let change = try CrashChange(PageAPI.body(request, known: CrashChange.members), now: now)
    let found = try await groups()
    let group = try Self.group(request.parts.first ?? "", in: found)
    let state = change.state(
      of: group, before: found.states[group.fingerprint], newest: try Self.newest(found),
      by: request.reader?.name ?? "", at: now)
    try await put(state, change.deed, request)
    return PageAPI.json(Self.described(.object([.init("fingerprint", .string(group.fingerprint))]), state))
  }

  /// `POST /crashes/{fingerprint}/group` with `{"into": …}`, `{"splitBy": …}`, or null to end such a rule.
  func regroupCrash(_ request: PageRequest) async throws(CollectorRefusal) -> HTTPResponse {
    let body = try PageAPI.body(request, known: ["into", "splitBy"])
    guard let member = body.object?.first, body.object?.count == 1, member.value == .null || CrashRule(body) != nil
    else {
      let details = CrashFingerprint.Detail.allCases.map(\.rawValue).joined(separator: " or ")
      throw CollectorRefusal(400, "send `into` with a fingerprint, or `splitBy` with \(details); null ends the rule")
    }
    let found = try await groups()
    let fingerprint = request.parts.first ?? ""
    var state: CrashState
    if let rule = CrashRule(body) {
      let group = try Self.group(fingerprint, in: found)
      _ = try Self.newest(found)
      if case .into(let other) = rule { try await prepare(fingerprint, into: other, found) }
      state = CrashState(noting: group, found.states[fingerprint], at: collector.time.unixMilliseconds)
      state.facts.rule = rule
    } else {
      let all = try await api.ask { () throws(StoreFailure) in try await collector.access.page.crashStates.all() }
      guard let known = all.first(where: { $0.fingerprint == fingerprint && $0.facts.rule != nil }) else {
        throw CollectorRefusal(404, "there is no rule about this fingerprint")
      }
      state = known
      state.facts.rule = nil
    }
    try await put(
      state, member.key == "into" ? "changed what a crash is merged into" : "changed how a crash is split", request)
    return PageAPI.json(["fingerprint": .string(fingerprint), "rule": state.facts.rule?.json ?? .null])
  }

  /// Checks a merge. The other group gets a state, so that it is found under later rules of grouping too.
  private func prepare(
    _ fingerprint: String, into other: String, _ found: Groups
  ) async throws(CollectorRefusal) {
    let group = try Self.group(other, in: found)
    let rules = await collector.access.page.crashes.rules
    guard !rules.leads(other, to: fingerprint) else {
      throw CollectorRefusal(400, "into: this group is merged into the one that is to be merged")
    }
    guard found.states[other] == nil else { return }
    let store = collector.access.page.crashStates
    let state = CrashState(noting: group, nil, at: collector.time.unixMilliseconds)
    try await api.ask { () throws(StoreFailure) in try await store.put(state) }
  }
}
