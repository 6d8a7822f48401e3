import PrismBase
import PrismHTTP
import PrismProtocol

/// Answers the API about releases: how widely each version of an app is used, and how often it crashes (docs/releases.md).
struct ReleaseAPI: PageAnswers {
  let api: PageAPI

  private static let daysMax: Int64 = 90
  private static let releasesMax = 200

  private typealias Release = ReleaseIndex.Release
  private typealias Sum = ReleaseIndex.Sum

  /// The figures of the days of a question.
  private struct Found {
    let days: ClosedRange<Int64>
    let isWhole: Bool
    let leftOut: LeftOut
    let sums: [Release: [Int64: Sum]]
    /// Lost hours by device.
    let missing: [Int32: Int]

    func total(_ release: Release) -> Sum {
      sums[release, default: [:]].values.reduce(into: Sum()) { $0.add($1) }
    }
  }

  private func found(_ request: PageRequest) async throws(CollectorRefusal) -> Found {
    let collector = api.collector
    let now = collector.time.unixMilliseconds
    let last = min(try request.number("until", in: 1...Int64.max).map { $0 - 1 } ?? now, now) / ReleaseIndex.day
    let since = try request.number("since", in: 0...Int64.max).map { $0 / ReleaseIndex.day } ?? last - 13
    guard since <= last, last - since < Self.daysMax else {
      throw CollectorRefusal(400, "since, until: must be 1 to \(Self.daysMax) days, the first one first")
    }
    let (namespace, app) = (request.http.parameter("namespace"), request.http.parameter("app"))
    let (index, scope) = (collector.access.page.releases, request.scope)
    return try await api.ask { () throws(StoreFailure) in
      let isWhole = try await index.refresh(collector.store, time: collector.time)
      return Found(
        days: since...last, isWhole: isWhole, leftOut: await index.leftOut(scope, namespace: namespace),
        sums: await index.sums(scope, namespace: namespace, app: app, since...last),
        missing: await index.missing(scope, namespace: namespace, since...last))
    }
  }

  /// `GET /releases`: the versions of apps that were in use, those in use for longest first.
  func releases(_ request: PageRequest) async throws(CollectorRefusal) -> HTTPResponse {
    let found = try await found(request)
    let groups = try await api.ask { [scope = request.scope] () throws(StoreFailure) in
      try await CrashWatch(api.collector).groups(of: scope)
    }
    let totals = found.sums.keys.map { (release: $0, sum: found.total($0)) }.sorted {
      ($1.sum.seconds, $0.release.app, $0.release.version) < ($0.sum.seconds, $1.release.app, $1.release.version)
    }
    let whole = Dictionary(grouping: totals) { App($0.release) }.mapValues { $0.reduce(0) { $0 + $1.sum.seconds } }
    let byDay = found.sums.reduce(into: [App: [Int64: Int]]()) { result, release in
      for (day, sum) in release.value { result[App(release.key), default: [:]][day, default: 0] += sum.seconds }
    }
    return PageAPI.json([
      "since": found.days.lowerBound * ReleaseIndex.day, "until": (found.days.upperBound + 1) * ReleaseIndex.day,
      "isWhole": found.isWhole, "leftOut": found.leftOut.count, "leftOutOf": found.leftOut.json, "total": totals.count,
      "missing": Self.missing(found.missing),
      "releases": totals.prefix(Self.releasesMax).map { release, sum in
        let days = found.sums[release, default: [:]].sorted { $0.key < $1.key }.map { day, own in
          JSONValue([
            "time": day * ReleaseIndex.day, "adoption": Self.share(own.seconds, byDay[App(release)]?[day] ?? 0),
          ]).joined(Self.rates(own, found.missing))
        }
        return Self.named(release).adding([
          "adoption": Self.share(sum.seconds, whole[App(release)] ?? 0), "days": days,
          "groups": Self.groups(release, groups),
        ]).joined(Self.rates(sum, found.missing))
      },
    ])
  }

  private struct App: Hashable {
    let namespace: String, app: String
    init(_ release: Release) { (namespace, app) = (release.namespace, release.app) }
  }

  /// `GET /releases/compare`: the rates of two versions of an app, and how many times the first one is the second one.
  func compare(_ request: PageRequest) async throws(CollectorRefusal) -> HTTPResponse {
    guard let namespace = request.http.parameter("namespace"), let app = request.http.parameter("app"),
      let version = request.http.parameter("version"), let other = request.http.parameter("other")
    else { throw CollectorRefusal(400, "namespace, app, version, other: are all needed") }
    let found = try await found(request)
    let pair = [version, other].map { Release(namespace: namespace, app: app, version: $0) }
    for release in pair where found.sums[release] == nil {
      let reason = found.isWhole ? "" : "; not all reports are read yet, try again"
      throw CollectorRefusal(404, "version \(release.version.prefix(64)) was not in use in this time\(reason)")
    }
    let sums = pair.map(found.total)
    let ratio = { (exposure: (Sum) -> Double, events: (Sum) -> Int) -> JSONValue in
      let arms = sums.map { RateTest.Arm(exposure: exposure($0), events: events($0)) }
      return RateRatio(arms[0], to: arms[1])?.json ?? .null
    }
    return PageAPI.json([
      "isWhole": found.isWhole, "missing": Self.missing(found.missing),
      "versions": zip(pair, sums).map { Self.named($0).joined(Self.rates($1, found.missing)) },
      "crashesPerHour": ratio({ Double($0.seconds) / 3600 }, \.crashes),
      "crashedSessions": ratio({ Double($0.sessions) }, \.crashedSessions),
      "crashedDevices": ratio({ Double($0.devices.count - Self.unknown($0, found.missing)) }, \.crashed.count),
    ])
  }

  // MARK: Figures

  private static func named(_ release: Release) -> JSONValue {
    JSONValue(["namespace": release.namespace, "app": release.app, "version": release.version])
  }

  private static func share(_ part: Int, _ whole: Int) -> JSONValue {
    whole > 0 ? .double(Double(min(part, whole)) / Double(whole)) : .null
  }

  /// Lost hours and their devices. A device whose chain of packets is broken counts, though not with how much is missing.
  private static func missing(_ missing: [Int32: Int]) -> JSONValue {
    JSONValue(["devices": missing.count, "hours": missing.values.reduce(0, +)])
  }

  /// A device of which hours are missing is not known to be free of crashes: it counts as crashed, or as one of these.
  private static func unknown(_ sum: Sum, _ missing: [Int32: Int]) -> Int {
    sum.devices.count { missing[$0] != nil && !sum.crashed.contains($0) }
  }

  private static func rates(_ sum: Sum, _ missing: [Int32: Int]) -> JSONValue {
    let unknown = unknown(sum, missing)
    let known = sum.devices.count - unknown
    let free = { (bad: Int, all: Int) in share(max(0, all - bad), all) }
    return JSONValue([
      "seconds": sum.seconds, "sessions": sum.sessions, "crashedSessions": sum.crashedSessions, "crashes": sum.crashes,
      "devices": sum.devices.count, "crashedDevices": sum.crashed.count, "missingDevices": unknown,
      "crashFreeSessions": free(sum.crashedSessions, sum.sessions), "crashFreeDevices": free(sum.crashed.count, known),
      "crashFreeHours": free(sum.crashedSeconds, sum.seconds),
    ])
  }

  /// Groups of crashes that no other version has, and those that are back with this one.
  private static func groups(_ release: Release, _ found: CrashWatch.Groups) -> JSONValue {
    let name = [release.app, release.version].filter { !$0.isEmpty }.joined(separator: " ")
    let own = found.all.values.filter { $0.versions[name] != nil && $0.namespaces.contains(release.namespace) }
    let regressed = own.count { group in
      guard let state = found.states[group.fingerprint], state.condition == .regressed else { return false }
      return group.hasCrashed(in: name, since: state.changedTime)
    }
    return JSONValue(["new": own.count { $0.versions.count == 1 }, "regressed": regressed])
  }
}

extension RateRatio {
  fileprivate var json: JSONValue {
    let number = { (value: Double?) in value.map { JSONValue.double($0) } ?? .null }
    return ["ratio": number(ratio), "low": .double(low), "high": number(high)]
  }
}

extension JSONValue {
  fileprivate func joined(_ other: JSONValue) -> JSONValue { .object((object ?? []) + (other.object ?? [])) }
}
