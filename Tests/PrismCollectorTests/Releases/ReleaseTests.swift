import Foundation
import PrismBase
import PrismHTTP
import PrismPacket
import PrismProtocol
import PrismTestSupport
import Testing

@testable import PrismCollector

/// Rates of releases from what devices reported (docs/releases.md).
@Suite struct ReleaseTests {
  private static let day: Int64 = 86_400_000

  /// One hour of a device, as it ends at `time`.
  static func hour(
    _ device: String, _ number: Int, of version: String, at time: Int64, crashes: Int = 0, sessions: Int = 1,
    part: Int = 0, in namespace: String = "shop", apps: Int = 1, lateChain: PacketID? = nil
  ) throws -> OpenedPacket {
    let apps = (0..<apps).map { place in
      """
      {"name":"pos","version":"\(version)\(place == 0 ? "" : ".\(place)")","seconds":3600,"sessions":\(sessions),"crashedSessions":\(crashes),"crashes":\(crashes)}
      """
    }.joined(separator: ",")
    return try StoreRig.packet(
      [Int(time)], device: device, namespace: namespace, type: "appHealth", after: lateChain,
      reportPrefix: "\(device)-\(number)-\(part)-",
      members: { _ in #""book":"b","number":\#(number),"seconds":3600,"part":\#(part),"apps":[\#(apps)],"leftOut":0"# })
  }

  /// A report of a type that happened at `time`.
  static func event(_ device: String, _ type: String, _ number: Int, at time: Int64) throws -> OpenedPacket {
    try StoreRig.packet(
      [Int(time)], device: device, namespace: "shop", type: type, reportPrefix: "\(device)-\(type)-\(number)-",
      members: { _ in #""ms":900"# })
  }

  private static func take(_ packets: [OpenedPacket], _ rig: PageRig, isLate: Bool = false) async throws {
    for packet in packets { _ = try await rig.collector.store.take(packet, isLate: isLate) }
  }

  private static func number(_ value: JSONValue?) -> Double { value?.double ?? -1 }

  @Test("rates and adoption are those of the hours that came, and a device with lost hours is never a healthy one")
  func rates() async throws {
    let rig = try PageRig()
    let now = rig.rig.time.unixMilliseconds
    // Ten devices: eight of 1.0, of which one crashes; two of 2.0, of which one crashes. One of 1.0 lost an hour.
    for device in 0..<8 {
      for number in [1, 2, 3] where device != 7 || number != 2 {
        let crashes = device == 0 && number == 1 ? 1 : 0
        try await Self.take([try Self.hour("d\(device)", number, of: "1.0", at: now, crashes: crashes)], rig)
      }
    }
    for device in 8..<10 {
      try await Self.take([try Self.hour("d\(device)", 1, of: "2.0", at: now, crashes: device - 8)], rig)
    }
    let found = try await rig.json("/releases", [("namespace", "shop"), ("app", "pos")])
    #expect(found["isWhole"] == true && found["missing"] == ["devices": 1, "hours": 1])
    let releases = try #require(found["releases"]?.array)
    #expect(releases.map { $0["version"] } == ["1.0", "2.0"])
    let (old, new) = (releases[0], releases[1])
    #expect(old["seconds"] == .int(23 * 3600) && old["devices"] == 8 && old["crashedDevices"] == 1)
    #expect(old["missingDevices"] == 1)
    #expect(abs(Self.number(old["crashFreeDevices"]) - 6.0 / 7) < 1e-9, "the one with lost hours counts for neither")
    #expect(abs(Self.number(old["crashFreeHours"]) - 22.0 / 23) < 1e-9)
    #expect(abs(Self.number(old["crashFreeSessions"]) - 22.0 / 23) < 1e-9)
    #expect(abs(Self.number(old["adoption"]) - 23.0 / 25) < 1e-9)
    #expect(Self.number(new["crashFreeDevices"]) == 0.5)
    #expect(old["days"]?.array?.count == 1)
    let compared = try await rig.json(
      "/releases/compare", [("namespace", "shop"), ("app", "pos"), ("version", "2.0"), ("other", "1.0")])
    let ratio = try #require(compared["crashesPerHour"])
    #expect(abs(Self.number(ratio["ratio"]) - 11.5) < 1e-9)
    #expect(Self.number(ratio["low"]) < 1 && Self.number(ratio["high"]) > 11.5, "two crashes prove nothing")
    let devices = Self.number(compared["crashedDevices"]?["ratio"])
    #expect(abs(devices - 3.5) < 1e-9, "one of two, and one of the seven known")
    let missing = await rig.ask(
      "/releases/compare", [("namespace", "shop"), ("app", "pos"), ("version", "3.0"), ("other", "1.0")])
    #expect(missing.status == 404)
  }

  @Test("a chain that is broken is missing data; days are apart, and a group of one version is new there")
  func days() async throws {
    let rig = try PageRig()
    let now = rig.rig.time.unixMilliseconds
    try await Self.take(
      [try Self.hour("a", 1, of: "1.0", at: now - Self.day), try Self.hour("a", 2, of: "2.0", at: now)], rig)
    var random = SystemRandomNumberGenerator()
    let lost = PacketID(unixMilliseconds: 1, using: &random)
    try await Self.take([try Self.hour("a", 3, of: "2.0", at: now, lateChain: lost)], rig, isLate: true)
    _ = try await rig.collector.store.take(
      try StoreRig.packet(
        [1], device: "a", namespace: "shop", type: "appCrash", payload: Array("#0 total ()\n#1 main ()".utf8),
        members: { _ in #""APP_NAME":"pos","APP_VERSION":"2.0""# }))
    let found = try await rig.json("/releases", [("since", String(now - Self.day))])
    #expect(found["missing"]?["devices"] == 1)
    let releases = try #require(found["releases"]?.array)
    #expect(releases.first?["version"] == "2.0" && releases.first?["groups"] == ["new": 1, "regressed": 0])
    #expect(releases.last?["groups"] == ["new": 0, "regressed": 0])
    let today = try await rig.json("/releases", [("since", String(now))])["releases"]?.array
    #expect(today?.map { $0["version"] } == ["2.0"])
  }

  /// The missing hours of all days from `since` to `until`, in days before today.
  private static func missing(_ rig: PageRig, _ since: Int64, _ until: Int64) async throws -> JSONValue? {
    let today = rig.rig.time.unixMilliseconds / day * day
    let range = [("since", String(today - since * day)), ("until", String(today - until * day + 1))]
    return try await rig.json("/releases", range)["missing"]
  }

  @Test("hours that were lost between two days are missing on both, and on no other day")
  func edge() async throws {
    let rig = try PageRig()
    let now = rig.rig.time.unixMilliseconds
    for (number, days) in [(1, 3), (2, 2), (5, 1), (6, 0)] as [(Int, Int64)] {
      try await Self.take([try Self.hour("a", number, of: "1.0", at: now - days * Self.day)], rig)
    }
    let lost: JSONValue = ["devices": 1, "hours": 2]
    let whole: JSONValue = ["devices": 0, "hours": 0]
    for (day, wanted) in [(3, whole), (2, lost), (1, lost), (0, whole)] as [(Int64, JSONValue)] {
      #expect(try await Self.missing(rig, day, day) == wanted, "\(day)")
    }
    #expect(try await Self.missing(rig, 3, 0) == lost)
  }

  @Test("an hour that comes late, and counts on a later day, is missing nowhere")
  func lateHour() async throws {
    let rig = try PageRig()
    let now = rig.rig.time.unixMilliseconds
    for (number, days) in [(4, 2), (1, 3), (6, 2), (3, 2), (5, 1), (7, 0), (2, 0), (2, 0)] as [(Int, Int64)] {
      try await Self.take([try Self.hour("a", number, of: "1.0", at: now - days * Self.day)], rig)
    }
    for day in 0...3 as ClosedRange<Int64> {
      #expect(try await Self.missing(rig, day, day) == ["devices": 0, "hours": 0], "\(day)")
    }
  }

  @Test("the least and the largest number in one book end no collector")
  func numbers() async throws {
    let rig = try PageRig()
    for number in [Int.min, 0, 7, Int.max - 1, Int.max] {
      try await Self.take([try Self.hour("a", number, of: "1.0", at: rig.rig.time.unixMilliseconds)], rig)
    }
    let missing = try #require(try await Self.missing(rig, 0, 0))
    #expect(missing["devices"] == 1 && (missing["hours"]?.int ?? 0) < 1 << 32)
  }

  @Test("an hour that comes again counts once, and so does each further part of it")
  func again() async throws {
    let rig = try PageRig()
    let now = rig.rig.time.unixMilliseconds
    for time in [now - 7_200_000, now] {
      try await Self.take([try Self.hour("a", 1, of: "1.0", at: time, crashes: 1, sessions: 3)], rig)
      try await Self.take([try Self.hour("a", 1, of: "2.0", at: time, part: 1)], rig)
    }
    try await Self.take([try Self.hour("a", 2, of: "1.0", at: now)], rig)
    let releases = try await rig.json("/releases")["releases"]?.array ?? []
    #expect(releases.map { $0["version"] } == ["1.0", "2.0"])
    #expect(releases.map { $0["sessions"] } == [4, 1] && releases[0]["crashes"] == 1 && releases[1]["seconds"] == 3600)
  }

  @Test("releases that one device makes up take no place of others, and what is left out has its namespace")
  func places() async throws {
    let rig = try PageRig()
    let now = rig.rig.time.unixMilliseconds
    try await Self.take([try Self.hour("a", 1, of: "1.0", at: now - Self.day)], rig)
    for number in 0..<40 {
      try await Self.take([try Self.hour("evil", number, of: "\(number)", at: now, in: "lab", apps: 60)], rig)
    }
    let shop = try await rig.json("/releases", [("namespace", "shop")])
    #expect(shop["total"] == 1 && shop["leftOut"] == 0 && shop["leftOutOf"] == [])
    let all = try await rig.json("/releases")
    let (total, leftOut) = (all["total"]?.int ?? 0, all["leftOut"]?.int ?? 0)
    #expect(total <= ReleaseIndex.releasesMax && total + leftOut == 2401)
    #expect(all["leftOutOf"]?.array == [["namespace": "lab", "count": .int(leftOut)]])
    let (lab, scope) = (Scope(["lab"]), rig.collector.access.page.releases)
    let days = (now - 13 * Self.day) / Self.day...now / Self.day
    #expect(await scope.sums(lab, namespace: nil, app: nil, days).count == total - 1)
    #expect(await scope.sums(lab, namespace: "shop", app: nil, days).isEmpty)
  }

  @Test("junk in a report, and numbers that are not possible, change no other figure")
  func junk() async throws {
    let rig = try PageRig()
    let now = rig.rig.time.unixMilliseconds
    for (place, members) in [
      #""apps":1"#, #""apps":[{}],"book":"b","number":1"#, #""a":1"#,
      #""book":"b","number":-9223372036854775808,"seconds":1e9,"apps":[{"name":"pos","version":"1","seconds":-5,"sessions":99999999999,"crashes":-1}]"#,
      #""book":"c","number":9223372036854775807,"seconds":99999999999,"apps":[{"name":"pos","version":"1","seconds":99999999999,"crashes":99999999999}]"#,
    ].enumerated() {
      let packet = try StoreRig.packet(
        [Int(now)], device: "j\(place)", namespace: "shop", type: "appHealth", members: { _ in members })
      try await Self.take([packet], rig)
    }
    try await Self.take([try Self.hour("a", 1, of: "2.0", at: now)], rig)
    let found = try await rig.json("/releases")
    let releases = try #require(found["releases"]?.array)
    #expect(Set(releases.compactMap { $0["version"]?.string }) == ["1", "2.0"])
    #expect(releases.first { $0["version"] == "2.0" }?["seconds"] == 3600)
    let junk = try #require(releases.first { $0["version"] == "1" })
    #expect((junk["seconds"]?.int ?? 0) <= 31 * 86_400 && (junk["crashes"]?.int ?? 0) <= 100_000)
  }

  @Test("since and until are at most 90 days") func bounds() async throws {
    let rig = try PageRig()
    #expect(await rig.ask("/releases", [("since", "0")]).status == 400)
    #expect(await rig.ask("/releases/compare", [("app", "pos")]).status == 400)
  }
}
