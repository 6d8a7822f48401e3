import PrismBase
import PrismHTTP
import PrismPacket
package import PrismProtocol

/// Answers the API about crashes, grouped by their fingerprint.
struct CrashAPI: PageAnswers {
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

  private func groups(_ request: PageRequest) async throws(CollectorRefusal) -> CrashWatch.Groups {
    let scope = request.scope
    return try await api.ask { () throws(StoreFailure) in try await CrashWatch(collector).groups(of: scope) }
  }

  private static func described(_ group: JSONValue, _ state: CrashState?) -> JSONValue {
    group.adding([
      "state": (state?.condition ?? .open).rawValue, "change": state?.json, "assignee": state?.facts.assignee,
      "link": state?.facts.link,
    ])
  }

  /// `GET /crashes`: the groups with a crash since `since` (14 days), those with the newest first.
  func crashes(_ request: PageRequest) async throws(CollectorRefusal) -> HTTPResponse {
    let now = collector.time.unixMilliseconds
    let since = try request.number("since", in: 0...Int64.max) ?? now - Self.fortnight
    let until = min(try request.number("until", in: 0...Int64.max) ?? .max, now + 1)
    let limit = try request.number("limit", in: 1...1000) ?? 200
    let wanted = try request.word("state", Wanted.self)
    let (namespace, device) = (request.http.parameter("namespace") ?? "", request.http.parameter("device") ?? "")
    let found = try await self.groups(request)
    let groups = found.all.values.filter { group in
      group.lastTime >= since && group.firstTime < until && (namespace.isEmpty || group.namespaces.contains(namespace))
        && (device.isEmpty || group.crashes(of: device) != nil)
        && wanted?.includes(found.states[group.fingerprint]?.condition ?? .open) != false
        && group.count(since: since, until: until) > 0
    }.sorted { ($1.lastTime, $0.fingerprint) < ($0.lastTime, $1.fingerprint) }
    return PageAPI.json([
      "since": since, "until": min(until, now), "isWhole": found.newest != nil,
      "leftOut": found.leftOut.count, "leftOutOf": found.leftOut.json, "total": groups.count,
      "count": groups.reduce(0) { $0 + $1.count(since: since, until: until) },
      "groups": groups.prefix(limit).map {
        let device = device.isEmpty ? nil : device
        return Self.described(
          $0.summary(since: since, until: until, buckets: Self.trendBuckets, device: device),
          found.states[$0.fingerprint])
      },
    ])
  }

  private static func group(_ fingerprint: String, in found: CrashWatch.Groups) throws(CollectorRefusal) -> CrashGroup {
    if let group = found.all[fingerprint] { return group }
    let reason = found.newest == nil ? "; not all crashes are read yet, try again" : ""
    throw CollectorRefusal(404, "there is no group of crashes with this fingerprint\(reason)")
  }

  /// `GET /crashes/{fingerprint}`
  func crash(_ request: PageRequest) async throws(CollectorRefusal) -> HTTPResponse {
    let now = collector.time.unixMilliseconds
    let found = try await groups(request)
    let group = try Self.group(request.parts.first ?? "", in: found)
    let state = found.states[group.fingerprint]
    let summary = group.summary(since: now - Self.fortnight, until: now + 1, buckets: Self.trendBuckets)
    let trendEnd = (now / CrashTimes.hour + 1) * CrashTimes.hour
    let (collector, scope) = (collector, request.scope)
    let (sample, devices) = try await api.ask { () throws(StoreFailure) in
      (
        try await collector.access.page.crashes.sample(of: group, scope, in: collector.store),
        try await DeviceSummary.all(in: collector.store)
      )
    }
    return PageAPI.json(
      of: group.details(Self.described(summary, state), sample, devices.map(\.device)).adding([
        "comments": state?.facts.comments ?? [], "trendEnd": trendEnd, "isWhole": found.newest != nil,
        "similar": group.similar(sample?.frames ?? [], in: found.all.values),
      ]))
  }

  // MARK: Changing

  private static func newest(_ found: CrashWatch.Groups) throws(CollectorRefusal) -> Int64 {
    guard let newest = found.newest else {
      throw CollectorRefusal(503, "not all crashes are read yet; try again", retryAfterSeconds: 1)
    }
    return newest
  }

  private func put(_ state: CrashState, _ deed: String, _ request: PageRequest) async throws(CollectorRefusal) {
    let store = collector.access.page.crashStates
    try await api.ask { () throws(StoreFailure) in try await store.put(state) }
    api.note(request, did: deed, to: state.fingerprint)
  }

  /// `POST /crashes/{fingerprint}/state` with the members of `CrashChange`.
  func changeCrash(_ request: PageRequest) async throws(CollectorRefusal) -> HTTPResponse {
    let now = collector.time.unixMilliseconds
    // The change says itself what each of them takes.
    let body = try PageAPI.body(
      request,
      known: [
        "state": .any, "build": .any, "count": .any, "devices": .any, "until": .any, "assignee": .any,
        "comment": .any, "link": .any,
      ])
    let change = try CrashChange(body, now: now)
    let found = try await groups(request)
    let group = try Self.group(request.parts.first ?? "", in: found)
    guard !found.shared.contains(group.fingerprint) else {
      throw CollectorRefusal(
        403, "other namespaces have this crash, too: an operator of all namespaces changes its state")
    }
    let state = change.state(
      of: group, before: found.states[group.fingerprint], newest: try Self.newest(found),
      by: request.reader?.name ?? "", at: now)
    try await put(state, change.deed, request)
    return PageAPI.json(of: Self.described(JSONValue(["fingerprint": group.fingerprint]), state))
  }

  /// `POST /crashes/{fingerprint}/group` with `{"into": …}`, `{"splitBy": …}`, or null to end such a rule.
  func regroupCrash(_ request: PageRequest) async throws(CollectorRefusal) -> HTTPResponse {
    let body = try PageAPI.body(request, known: ["into": .any, "splitBy": .any])
    guard let member = body.object?.first, body.object?.count == 1,
      member.value == .null || CrashRule(controlJSON: body) != nil
    else {
      let details = CrashFingerprint.Detail.allCases.map(\.rawValue).joined(separator: " or ")
      throw CollectorRefusal(400, "send `into` with a fingerprint, or `splitBy` with \(details); null ends the rule")
    }
    let found = try await groups(request)
    let fingerprint = request.parts.first ?? ""
    var state: CrashState
    if let rule = CrashRule(controlJSON: body) {
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
    return PageAPI.json(["fingerprint": fingerprint, "rule": state.facts.rule])
  }

  /// Checks a merge. The other group gets a state, so that it is found under later rules of grouping too.
  private func prepare(
    _ fingerprint: String, into other: String, _ found: CrashWatch.Groups
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

/// Answers the API about debug files, which name the frames of crashes.
struct SymbolAPI: PageAnswers {
  private static let shownMax = 1000

  let api: PageAPI

  private var symbols: Symbolizer { api.collector.access.page.symbols }

  /// `GET /symbols`: the files, the newest first, and builds that crashed and have no file, those with most crashes first.
  func list(_ request: PageRequest) async throws(CollectorRefusal) -> HTTPResponse {
    let scope = request.scope
    _ = try await api.ask { () throws(StoreFailure) in try await CrashWatch(api.collector).groups(of: scope) }
    let index = api.collector.access.page.crashes
    let builds = await index.builds(scope)
    let (all, faults) = (await symbols.files(), await symbols.faults)
    // A debug file is of no namespace: a reader of some sees those of builds that crashed there.
    let files = scope.isLimited ? all.filter { builds[$0.key] != nil } : all
    let missing = await index.builds(scope, without: files)
    return PageAPI.json([
      "program": Symbolizer.isInstalled ? Symbolizer.program : nil as String?, "total": files.count,
      "files": files.values.sorted { ($1.time, $0.buildID) < ($0.time, $1.buildID) }.prefix(Self.shownMax).map {
        $0.json.adding(["fault": faults[$0.buildID]])
      },
      "missing": missing.prefix(Self.shownMax).map {
        JSONValue(["buildId": $0.key, "module": $0.value.module, "crashes": $0.value.crashes])
      },
    ])
  }

  /// `POST /symbols`: a file, or a part of one: `upload` names it, `offset` is the part's place, `size` the size of the whole.
  func add(_ request: PageRequest) async throws(CollectorRefusal) -> HTTPResponse {
    let body = request.http.body
    guard request.http.header("content-type") == "application/octet-stream", !body.isEmpty else {
      throw CollectorRefusal(400, "send the file, or a part of it, as application/octet-stream")
    }
    let name = request.http.parameter("upload") ?? Hex.encode(((try? Hashing.sha256(body)) ?? []).prefix(16).map { $0 })
    guard (1...64).contains(name.utf8.count), name.utf8.allSatisfy({ $0.isASCIIDigit || $0.isASCIILetter }) else {
      throw CollectorRefusal(400, "upload: must be 1 to 64 letters and digits")
    }
    let size = try request.number("size", in: 1...SymbolFolder.fileBytesMax) ?? body.count
    let offset = try request.number("offset", in: 0...size) ?? 0
    let outcome: SymbolFolder.Outcome?
    do throws(SymbolFolder.Fault) {
      outcome = try await symbols.take(body, of: name, at: offset, size: size)
    } catch { throw CollectorRefusal(422, error.message) }
    switch outcome {
    case nil: return PageAPI.json(["result": "more", "buildId": JSONValue.null])
    case .duplicate(let id): return PageAPI.json(["result": "duplicate", "buildId": id])
    case .added(let id):
      api.note(request, did: "added a debug file", to: id)
      return PageAPI.json(["result": "added", "buildId": id])
    }
  }

  /// `DELETE /symbols/{buildId}`
  func remove(_ request: PageRequest) async throws(CollectorRefusal) -> HTTPResponse {
    let id = request.parts.first ?? ""
    guard symbols.folder.remove(id) else { throw CollectorRefusal(404, "there is no debug file of this build id") }
    api.note(request, did: "removed a debug file", to: id)
    return PageAPI.json(["result": "removed", "buildId": id])
  }
}

extension SymbolFolder.File {
  /// As the API and `symbols list` show it.
  package var json: JSONValue { JSONValue(["buildId": buildID, "bytes": bytes, "time": time]) }
}
