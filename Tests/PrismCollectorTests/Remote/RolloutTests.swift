import Foundation
import PrismBase
import PrismConfig
import PrismHTTP
import PrismPacket
import PrismProtocol
import PrismTestSupport
import Synchronization
import Testing

@testable import PrismCollector

@Suite("Rollouts of remote configuration")
struct RolloutTests {
  /// A device that takes what it is answered, as the daemon does.
  private struct Device {
    let id: String
    private(set) var namespaces: [String: String] = [:]
    private(set) var updateTime: Int64?
    private(set) var version: Int64 = 0

    init(_ number: Int) { id = "till-\(number)" }

    mutating func ask(_ rig: Rig) async throws {
      let document = try await rig.ask(id, updateTime)
      let isDelta = updateTime != nil
      if document.isFull, isDelta {
        updateTime = nil
        return try await ask(rig)
      }
      #expect(try #require(document.version) >= version, "a signed daemon refuses an older version")
      if !isDelta { namespaces = [:] }
      for entry in document.namespaces { namespaces[entry.name.text] = entry.isRemoved ? nil : entry.json.text }
      (updateTime, version) = (document.updateTime, document.version ?? 0)
    }

    func has(_ value: Int) -> Bool { namespaces["shop"]?.contains(#""maxItem":\#(value)}"#) == true }
  }

  private final class Rig: Sendable {
    let path = TemporaryFolder.make()
    let time = ManualTime()
    let lines = Mutex<[String]>([])
    let collector = Mutex<Collector?>(nil)

    init(_ files: [String: String]) throws {
      try FileManager.default.createDirectory(atPath: path + "/remote.d/next", withIntermediateDirectories: true)
      try "sender-token-of-tests\n".write(toFile: path + "/senders", atomically: true, encoding: .utf8)
      for (name, text) in files { try write(name, text) }
      try start()
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }  // a left folder harms no test

    func write(_ name: String, _ text: String?) throws {
      let file = "\(path)/remote.d/\(name).yaml"
      guard let text else { return try FileManager.default.removeItem(atPath: file) }
      try text.write(toFile: file, atomically: true, encoding: .utf8)
      time.advance(by: .seconds(3))
    }

    /// Begins a collector on the state of the one before.
    func start() throws {
      var options = CollectorOptions(state: path, keys: ["main": CollectorTests.key])
      options.remote = CollectorOptions.Remote(folder: path + "/remote.d")
      options.tokenFile = path + "/senders"
      let log = Logger(write: { [self] line in lines.withLock { $0.append(line) } })
      let begun = try Collector(options, store: MemoryPacketStore(), time: time, log: log)
      collector.withLock { $0 = begun }
    }

    var current: Collector { collector.withLock { $0! } }

    func ask(_ device: String, _ since: Int64?) async throws -> RemoteDocument {
      let query = [("deviceId", device)] + (since.map { [("updateTime", String($0))] } ?? [])
      let answer = await current.answer(
        PageRig.request(
          "/prism/config", query.map { (name: $0.0, value: $0.1) },
          headers: [("authorization", "Bearer sender-token-of-tests")]))
      #expect(answer.status == 200)
      return try RemoteDocument(parsing: try RemoteEnvelope.open(answer.body, publicKey: nil))
    }

    @discardableResult func change(_ body: String, status: Int = 200) async throws -> JSONValue {
      time.advance(by: .seconds(3))
      let answer = await current.answerReader(
        PageRig.request(
          "/api/v1/configuration/rollout", method: .post, headers: [("content-type", "application/json")], body: body),
        isOwner: true)
      #expect(answer.status == status, "\(body): \(String(decoding: answer.body, as: UTF8.self))")
      return try JSONValue(parsing: answer.body)
    }

    func configuration() async throws -> JSONValue {
      let answer = await current.answerReader(
        PageRig.request("/api/v1/configuration", [("limit", "1000")]), isOwner: true)
      return try JSONValue(parsing: answer.body)
    }
  }

  /// All ask twice: the second question says what the first one's answer was.
  private func ask(_ devices: inout [Device], _ rig: Rig) async throws {
    for round in 0..<2 {
      for index in devices.indices { try await devices[index].ask(rig) }
      rig.time.advance(by: .seconds(round + 1))
    }
  }

  /// Holds the API's figures and its list to the devices' own.
  private func check(_ devices: [Device], _ rig: Rig, have value: Int, _ step: String) async throws -> Set<String> {
    let own = Set(devices.filter { $0.has(value) }.map(\.id))
    let found = try await rig.configuration()
    let listed = try #require(found["devices"]?.array)
    #expect(listed.count == devices.count)
    if let rollout = found["rollout"], !rollout.isNull {
      #expect(rollout["given"] == .int(own.count) && rollout["confirmed"] == .int(own.count), "\(step)")
      #expect(Set(listed.filter { $0["staged"] == true }.compactMap { $0["device"]?.string }) == own, "\(step)")
    } else {
      #expect(!listed.contains { $0["staged"] == true }, "\(step)")
    }
    return own
  }

  @Test("fifty devices: 10 %, paused, resumed and widened, rolled back; what they have is what the API says")
  func fifty() async throws {
    let rig = try Rig(["shop": "maxItem: 5", "pay": "maxItem: 7", "next/shop": "maxItem: 6"])
    var devices = (1...50).map { Device($0) }
    try await ask(&devices, rig)
    #expect(try await check(devices, rig, have: 6, "before").isEmpty)

    let begun = try await rig.change(#"{"action":"start","percent":10,"groups":["till-5*"]}"#)
    let id = Int64(try #require(begun["id"]?.int))
    try await ask(&devices, rig)
    let first = try await check(devices, rig, have: 6, "10 %")
    let chosen = devices.map(\.id).filter { Rollout.share(of: $0, in: id) < 1000 || $0 == "till-5" || $0 == "till-50" }
    #expect(first == Set(chosen) && first.count >= 2 && first.count < 20)
    #expect(devices.allSatisfy { $0.has(6) || $0.has(5) } && devices.allSatisfy { $0.namespaces["pay"] != nil })

    try await rig.change(#"{"action":"pause"}"#)
    try await rig.change(#"{"action":"widen","percent":40}"#)
    try rig.write("pay", "maxItem: 8")
    devices.append(Device(500))
    try await ask(&devices, rig)
    #expect(try await check(devices, rig, have: 6, "paused") == first, "who has it keeps it, and no other gets it")
    #expect(devices.allSatisfy { $0.namespaces["pay"]?.contains("8") == true }, "other changes go on")

    try rig.start()
    try await rig.change(#"{"action":"resume"}"#)
    try await ask(&devices, rig)
    let second = try await check(devices, rig, have: 6, "40 %")
    #expect(second.isSuperset(of: first) && second.count > first.count && second.count < 40)

    try await rig.change(#"{"action":"widen","percent":100}"#)
    try await ask(&devices, rig)
    #expect(try await check(devices, rig, have: 6, "100 %").count == 51)

    try await rig.change(#"{"action":"rollBack"}"#)
    try await ask(&devices, rig)
    #expect(try await check(devices, rig, have: 6, "rolled back").isEmpty && devices.allSatisfy { $0.has(5) })
    let history = try #require(try await rig.configuration()["history"]?.array)
    #expect(
      history.reversed().map { "\($0["state"]?.string ?? "") \($0["percent"]?.int ?? -1)" }
        == ["running 10", "paused 10", "paused 40", "running 40", "running 100", "rolledBack 100"])
    #expect(history.allSatisfy { $0["who"] == "owner" })
    let logged = rig.lines.withLock { $0.filter { $0.contains("changed by an operator") } }
    #expect(logged.count == 6 && logged.allSatisfy { $0.contains("who=owner") })
  }

  @Test("a rollout whose files come into the folder is done, for every device")
  func done() async throws {
    let rig = try Rig(["shop": "maxItem: 5", "next/shop": "maxItem: 6", "next/new": "maxItem: 1"])
    var devices = (1...20).map { Device($0) }
    try await rig.change(#"{"action":"start","percent":50}"#)
    try await ask(&devices, rig)
    let part = try await check(devices, rig, have: 6, "50 %")
    #expect(part.count > 2 && part.count < 18)
    #expect(devices.allSatisfy { ($0.namespaces["new"] != nil) == $0.has(6) })
    try rig.write("shop", "maxItem: 6")
    try await ask(&devices, rig)
    #expect(devices.allSatisfy { $0.has(6) } && devices.count { $0.namespaces["new"] != nil } == part.count)
    try rig.write("new", "maxItem: 1")
    try await ask(&devices, rig)
    #expect(devices.allSatisfy { $0.has(6) && $0.namespaces["new"] != nil })
    let found = try await rig.configuration()
    #expect(found["rollout"]?.isNull == true && found["history"]?.array?.first?["state"] == "done")
    #expect(found["candidate"]?["namespaces"]?.array?.isEmpty == true)
  }

  @Test("a namespace that only the rollout has is taken from devices that go back; the next rollout chooses others")
  func back() async throws {
    let rig = try Rig(["shop": "maxItem: 5", "next/new": "maxItem: 1"])
    var devices = (1...40).map { Device($0) }
    let first = try await rig.change(#"{"action":"start","percent":50}"#)
    try await ask(&devices, rig)
    let some = Set(devices.filter { $0.namespaces["new"] != nil }.map(\.id))
    #expect(some.count > 5 && some.count < 35)
    // No device asks between the two.
    try await rig.change(#"{"action":"rollBack"}"#)
    try rig.write("next/new", nil)
    try rig.write("next/other", "maxItem: 2")
    let second = try await rig.change(#"{"action":"start","percent":50}"#)
    #expect(first["id"] != second["id"])
    try await ask(&devices, rig)
    #expect(devices.allSatisfy { $0.namespaces["new"] == nil && $0.namespaces["shop"] != nil })
    #expect(Set(devices.filter { $0.namespaces["other"] != nil }.map(\.id)) != some)
  }

  @Test("a device that asks for everything while a rollout is paused gets what the folder has")
  func paused() async throws {
    let rig = try Rig(["shop": "maxItem: 5", "next/shop": "maxItem: 6"])
    try await rig.change(#"{"action":"start","percent":100}"#)
    var device = Device(1)
    try await device.ask(rig)
    #expect(device.has(6))
    try await rig.change(#"{"action":"pause"}"#)
    try await device.ask(rig)
    #expect(device.has(6))
    var fresh = Device(2)
    try await fresh.ask(rig)
    #expect(fresh.has(5))
    #expect(try await rig.ask("till-1", (fresh.updateTime ?? 0) + 2).isFull, "a count that was never given")
  }

  @Test(
    "what does not fit the state is refused, with the reason",
    arguments: [
      (#"{"action":"pause"}"#, 409), (#"{"action":"widen","percent":5}"#, 409), (#"{"action":"rollBack"}"#, 409),
      (#"{"action":"start"}"#, 400), (#"{"action":"start","percent":101}"#, 400), (#"{"action":"stop"}"#, 400),
      (#"{"action":"start","percent":"10"}"#, 400), (#"{"action":"start","percent":1,"groups":["a b"]}"#, 400),
      (#"{"action":"start","percent":1,"group":[]}"#, 400), (#"{"action":"start","percent":10}"#, 200),
    ])
  func refused(body: String, status: Int) async throws {
    let rig = try Rig(["shop": "maxItem: 5", "next/shop": "maxItem: 6"])
    try await rig.change(body, status: status)
    if status == 200 {
      for (body, status) in [
        (body, 409), (#"{"action":"resume"}"#, 409), (#"{"action":"widen","percent":9}"#, 409),
        (#"{"action":"pause"}"#, 200), (#"{"action":"pause"}"#, 409), (#"{"action":"rollBack"}"#, 200),
        (#"{"action":"rollBack"}"#, 409),
      ] { try await rig.change(body, status: status) }
    }
  }

  @Test("a file of next/ that was corrected and moved into the folder ends the rollout for the chosen devices, too")
  func correctedAndMoved() async throws {
    let rig = try Rig(["shop": "maxItem: 5", "next/shop": "maxItem: 6"])
    try await rig.change(#"{"action":"start","percent":0,"groups":["till-1"]}"#)
    var devices = [Device(1), Device(2)]
    try await ask(&devices, rig)
    #expect(devices[0].has(6) && devices[1].has(5))
    // Another change of the folder, with the file still in next/, ends nothing.
    try rig.write("shop", "maxItem: 4")
    try await ask(&devices, rig)
    #expect(devices[0].has(6) && devices[1].has(4))
    try rig.write("next/shop", nil)
    try rig.write("shop", "maxItem: 9")
    try await ask(&devices, rig)
    #expect(devices.allSatisfy { $0.has(9) })
    #expect(try await rig.configuration()["history"]?.array?.first?["state"] == "done")
  }

  @Test("a rollout is widened by more groups alone")
  func moreGroups() async throws {
    let rig = try Rig(["shop": "maxItem: 5", "next/shop": "maxItem: 6"])
    try await rig.change(#"{"action":"start","percent":0,"groups":["till-1"]}"#)
    try await rig.change(#"{"action":"widen"}"#, status: 400)
    try await rig.change(#"{"action":"widen","groups":["till-2"]}"#)
    var devices = [Device(1), Device(2), Device(3)]
    try await ask(&devices, rig)
    #expect(devices.map { $0.has(6) } == [true, true, false])
  }

  @Test("faults of next/ are shown, and nothing begins; the folder is served as before")
  func faults() async throws {
    let rig = try Rig(["shop": "maxItem: 5", "next/shop": "maxItem: many"])
    let found = try await rig.configuration()
    #expect(found["candidate"]?["faults"]?.array?.count == 1 && found["summary"]?["faults"] == 0)
    try await rig.change(#"{"action":"start","percent":10}"#, status: 409)
    try rig.write("next/shop", "maxItem: 5")
    try await rig.change(#"{"action":"start","percent":10}"#, status: 409)
    var device = Device(1)
    try await device.ask(rig)
    #expect(device.has(5))
  }

  @Test(
    "a group names ids of devices, with * for any characters",
    arguments: [
      ("lab-1", "lab-1", true), ("lab-1", "lab-*", true), ("lab-1", "*", true), ("lab-1", "*-1", true),
      ("lab-1", "l*b*1", true), ("lab-1", "lab-1*", true), ("lab-1", "lab", false), ("lab-1", "lab-*1*1", false),
      ("aa", "a*a*a", false), ("lab-1", "x*", false), ("lab-1", "*x", false),
    ])
  func groups(device: String, group: String, matches: Bool) {
    #expect(Rollout.Reach.matches(device, group) == matches)
  }

  @Test("the share of devices is that of the percentage, and each rollout chooses others")
  func shares() {
    let devices = (0..<10_000).map { "device-\($0)" }
    let chosen = { (rollout: Int64) in Set(devices.filter { Rollout.share(of: $0, in: rollout) < 1000 }) }
    #expect((900...1100).contains(chosen(1).count))
    #expect((50...160).contains(chosen(1).intersection(chosen(2)).count))
  }

  @Test("rollouts and their events are kept up to a number; a device from before them asks for everything")
  func bounded() async throws {
    let rig = try Rig(["shop": "maxItem: 5", "next/shop": "maxItem: 6"])
    try await rig.change(#"{"action":"start","percent":100}"#)
    var device = Device(1)
    try await device.ask(rig)
    for _ in 0..<RolloutHistory.rolloutsMax {
      try await rig.change(#"{"action":"rollBack"}"#)
      try await rig.change(#"{"action":"start","percent":0}"#)
    }
    try rig.start()
    let table = try #require(await rig.current.remote?.store.rollouts)
    #expect(Set(table.events.map(\.rollout)).count == RolloutHistory.rolloutsMax)
    #expect(try await rig.ask("till-1", device.updateTime).isFull)
    try await device.ask(rig)
    #expect(device.has(5))
  }
}
