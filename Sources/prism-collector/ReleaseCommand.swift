import PrismBase
import PrismCollector
import PrismProtocol

extension Command {
  /// `prism-collector release …`: versions of apps.
  static let release = group(
    "release",
    [
      (
        "list", "",
        """
        the versions of apps in the last 14 days, those in use for longest first
        Namespace, app, version, share of the time in use, hours, devices, and the shares of sessions, devices and hours
        that are free of crashes.
        """
      ),
      (
        "compare", "NAMESPACE APP VERSION OTHER",
        "how many times the rates of VERSION are those of OTHER, with their intervals of 95 %"
      ),
    ], options: [json]
  ) { line throws(Failure) in
    try await line.ask { client throws(Failure) in
      let releases = Releases(client: client, line: line)
      if line.verb == "list" { return try await releases.list() }
      try await releases.compare(line.operands)
      return 0
    }
  }
}

private struct Releases {
  let client: CollectorClient
  let line: Invocation

  func list() async throws(Failure) -> Int32 {
    let found = try await client.whole("/releases")
    let listing = Listing(
      line, "namespace app version adoption used devices crashFreeSessions crashFreeDevices crashFreeHours")
    for release in found["releases"]?.array ?? [] {
      let texts =
        ["namespace", "app", "version"].map { release[$0]?.string }
        + [Self.percent(release["adoption"]), "\((release["seconds"]?.int ?? 0) / 3600) h", release.shown("devices")]
        + ["crashFreeSessions", "crashFreeDevices", "crashFreeHours"].map { Self.percent(release[$0]) }
      listing.add(release, texts)
    }
    let code = listing.end()
    printMissing(found)
    return code
  }

  func compare(_ words: [String]) async throws(Failure) {
    let query = zip(["namespace", "app", "version", "other"], words).map { "\($0)=\($1.percentEncoded)" }
    let found = try await client.whole("/releases/compare", query: query.joined(separator: "&"))
    if line.isJSON { return print(OutputText.json(found.text)) }
    for (key, title) in [
      ("crashesPerHour", "crashes per hour"), ("crashedSessions", "sessions that crashed"),
      ("crashedDevices", "devices that crashed"),
    ] {
      guard let ratio = found[key], ratio != .null else {
        print("\(title): no crash, nothing to compare")
        continue
      }
      let number = { (value: JSONValue?) in value?.double.map { "\(($0 * 100).rounded() / 100)" } ?? "any" }
      print("\(title): \(number(ratio["ratio"])) times (\(number(ratio["low"])) to \(number(ratio["high"])))")
    }
    printMissing(found)
  }

  private func printMissing(_ found: JSONValue) {
    guard !line.isJSON, let devices = found["missing"]?["devices"]?.int, devices > 0 else { return }
    print("missing: \(found["missing"]?["hours"]?.int ?? 0) hours of \(devices) devices were lost on their way")
  }

  private static func percent(_ value: JSONValue?) -> String {
    value?.double.map { "\(($0 * 10_000).rounded() / 100) %" } ?? "–"
  }
}
