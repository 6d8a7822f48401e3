import Foundation
import PrismBase
import PrismConfig
import PrismHTTP
import PrismPacket
import PrismProtocol
import PrismSQL
import PrismTestSupport
import Testing

@testable import PrismCollector

@Suite("Remote configuration that a collector serves")
struct RemoteConfigurationStoreTests {
  private static let pem = """
    -----BEGIN PRIVATE KEY-----
    MC4CAQAwBQYDK2VwBCIEIIdPEyJnJPFOZ2ASk9GtuFrLltMXDhtp6B/ctP3U3ZaN
    -----END PRIVATE KEY-----

    """
  private static let publicKey = Base64.decode(Array("D7yl7tEEtjoPgDTaavVhc8d0T5+nAPmxxUxqn+jiGUk=".utf8))!

  /// A folder of files and one of state, gone with the value.
  private final class Folder: Sendable {
    let path: String
    let time = ManualTime()
    var files: String { path + "/remote.d" }

    init(_ files: [String: String]) throws {
      path = TemporaryFolder.make()
      try FileManager.default.createDirectory(atPath: path + "/remote.d", withIntermediateDirectories: false)
      for (name, text) in files { try write(name, text) }
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    func write(_ name: String, _ text: String?) throws {
      let file = "\(files)/\(name).yaml"
      guard let text else { return try FileManager.default.removeItem(atPath: file) }
      try text.write(toFile: file, atomically: true, encoding: .utf8)
    }

    func store(signed: Bool = false, in database: FleetDatabase? = nil) throws -> RemoteConfigurationStore {
      let key = signed ? Secret(Array(RemoteConfigurationStoreTests.pem.utf8)) : nil
      let options = try #require(CollectorOptions.Remote(folder: files, signingKey: key))
      return try RemoteConfigurationStore(
        options, state: path, in: database ?? .folder(path), time: time, log: Logger(write: { _ in }))
    }

    func collector(tokenFile: String? = nil) throws -> Collector {
      var options = CollectorOptions(state: path, keys: ["main": CollectorTests.key])
      options.remote = CollectorOptions.Remote(folder: files)
      options.tokenFile = tokenFile
      return try Collector(options, time: time, log: Logger(write: { _ in }))
    }

    /// The store looks once a second.
    func ask(_ store: RemoteConfigurationStore, since: Int64?, publicKey: [UInt8]? = nil) async throws -> RemoteDocument
    {
      time.advance(by: .seconds(1))
      let body = try await store.answer(to: "d", since: since).body
      return try RemoteDocument(parsing: try RemoteEnvelope.open(body, publicKey: publicKey))
    }
  }

  private func texts(_ document: RemoteDocument) -> [String] { document.namespaces.map(\.json.text) }

  @Test("everything at first, then what changed since, removals too, over restarts")
  func changes() async throws {
    let folder = try Folder(["shop": "maxItem: 5", "pay": "isUpload: false"])
    var store = try folder.store()
    let first = try await folder.ask(store, since: nil)
    #expect(first.isFull && first.since == nil && first.expireTime == nil)
    let version = try #require(first.version)
    #expect(version == folder.time.unixMilliseconds / 60_000 + 1, "minutes since 1970, and the first change")
    #expect(
      texts(first) == [#"{"name":"pay","delFlag":0,"isUpload":false}"#, #"{"name":"shop","delFlag":0,"maxItem":5}"#])
    let none = try await folder.ask(store, since: first.updateTime)
    #expect(none.namespaces.isEmpty && !none.isFull && none.updateTime == first.updateTime)
    #expect(none.since == first.updateTime)

    try folder.write("shop", "maxItem: 6")
    let second = try await folder.ask(store, since: first.updateTime)
    #expect(texts(second) == [#"{"name":"shop","delFlag":0,"maxItem":6}"#])
    #expect(second.updateTime > first.updateTime && second.version == version + 1)

    // A change while no collector runs, and a clock that was set back meanwhile.
    try folder.write("pay", nil)
    folder.time.stepWallClock(milliseconds: -86_400_000)
    store = try folder.store()
    let third = try await folder.ask(store, since: second.updateTime)
    #expect(texts(third) == [#"{"name":"pay","delFlag":1}"#])
    #expect(third.updateTime > second.updateTime && third.version == version + 2)
    #expect(texts(try await folder.ask(store, since: first.updateTime)).count == 2)
    #expect(
      texts(try await folder.ask(store, since: nil))
        == [#"{"name":"pay","delFlag":1}"#, #"{"name":"shop","delFlag":0,"maxItem":6}"#], "removals are named")
    let unchanged = try folder.store()
    #expect(await unchanged.version() == version + 2, "a restart alone is no change")
  }

  @Test("a device that a rollout chooses later gets its files under a version of their own, if that is signed")
  func chosenLater() async throws {
    for isSigned in [true, false] {
      let folder = try Folder(["shop": "maxItem: 5"])
      try FileManager.default.createDirectory(atPath: folder.files + "/next", withIntermediateDirectories: false)
      try folder.write("next/shop", "maxItem: 6")
      let store = try folder.store(signed: isSigned)
      let reach = Rollout.Reach(percent: 100, expression: "tag.ring = late")
      _ = try await store.change(.start(reach), by: "owner")
      func ask(_ device: String, _ since: Int64?, isChosen: Bool) async throws -> RemoteDocument {
        folder.time.advance(by: .seconds(1))
        let chosen = DeviceChoice(expression: "tag.ring = late", devices: isChosen ? [device] : [])
        let body = try await store.answer(to: device, since: since, among: chosen).body
        return try RemoteDocument(parsing: try RemoteEnvelope.open(body, publicKey: isSigned ? Self.publicKey : nil))
      }
      let first = try await ask("d", nil, isChosen: false)
      folder.time.advance(by: .seconds(10))
      let second = try await ask("d", first.updateTime, isChosen: true)
      #expect(texts(second) == [#"{"name":"shop","delFlag":0,"maxItem":6}"#])
      #expect(try #require(second.version) == first.version! + (isSigned ? 1 : 0))
      // Another one within 10 s waits for its next question, where versions would rise with each of them.
      let other = try await ask("e", second.updateTime & ~1, isChosen: true)
      #expect(texts(other).isEmpty == isSigned && other.version == second.version)
      folder.time.advance(by: .seconds(10))
      let third = try await ask("e", other.updateTime, isChosen: true)
      #expect(texts(third).isEmpty == !isSigned)
    }
  }

  @Test("a folder that became empty takes no namespace away; `retired: true` does", arguments: [false, true])
  func emptied(isRestarted: Bool) async throws {
    let folder = try Folder(["shop": "maxItem: 5", "pay": "isUpload: false"])
    var store = try folder.store()
    let first = try await folder.ask(store, since: nil)
    for name in ["shop", "pay"] { try folder.write(name, nil) }
    if isRestarted { store = try folder.store() }
    let emptied = try await folder.ask(store, since: first.updateTime)
    #expect(emptied.namespaces.isEmpty && emptied.version == first.version)
    #expect(try await folder.ask(store, since: nil).namespaces.count == 2)
    try folder.write("shop", "retired: true")
    try folder.write("pay", "isUpload: false")
    #expect(texts(try await folder.ask(store, since: first.updateTime)) == [#"{"name":"shop","delFlag":1}"#])
    let whole = [#"{"name":"pay","delFlag":0,"isUpload":false}"#, #"{"name":"shop","delFlag":1}"#]
    #expect(texts(try await folder.ask(store, since: nil)) == whole)
    try folder.write("pay", "retired: true\nmaxItem: 5")
    #expect(texts(try await folder.ask(store, since: nil)) == whole, "a fault: nothing changes")
  }

  /// The replicas' folders, of which each has its own clock.
  private func ask(
    _ stores: [RemoteConfigurationStore], _ folders: [Folder], since: Int64?
  ) async throws -> [RemoteDocument] {
    var documents: [RemoteDocument] = []
    for (store, folder) in zip(stores, folders) { documents.append(try await folder.ask(store, since: since)) }
    return documents
  }

  @Test("replicas answer alike; the folder that changed has the word, an old one never", arguments: [false, true])
  func replicas(isRestarted: Bool) async throws {
    let database = try await StoreRig().fleet(.postgresql)
    let folders = try [Folder(["shop": "maxItem: 5"]), Folder(["shop": "maxItem: 5"])]
    var stores = try folders.map { try $0.store(in: database) }
    let first = try await ask(stores, folders, since: nil)
    #expect(first[0] == first[1])
    try folders[0].write("shop", "maxItem: 6")
    if isRestarted { stores = try folders.map { try $0.store(in: database) } }
    let second = try await ask(stores, folders, since: first[0].updateTime)
    #expect(second[0] == second[1], "the second one's folder is old, and it answers what the first one's has")
    #expect(texts(second[1]) == [#"{"name":"shop","delFlag":0,"maxItem":6}"#])
    #expect(second[1].version == first[0].version.map { $0 + 1 })
    try folders[1].write("shop", "maxItem: 6")
    #expect(try await ask(stores, folders, since: second[0].updateTime).allSatisfy { $0.namespaces.isEmpty })
    // Back to what it was, on purpose.
    try folders[1].write("shop", "maxItem: 5")
    _ = try await folders[1].ask(stores[1], since: nil)
    let third = try await ask(stores, folders, since: second[0].updateTime)
    #expect(texts(third[0]) == [#"{"name":"shop","delFlag":0,"maxItem":5}"#])
    #expect(third[0] == third[1] && third[0].version == first[0].version.map { $0 + 2 })
    // A new replica with other files has no word either, until they change.
    let newcomer = try Folder(["shop": "maxItem: 9"])
    let store = try newcomer.store(in: database)
    #expect(try await newcomer.ask(store, since: nil).version == third[0].version)
  }

  @Test("replicas share a rollout: each gives it to the same devices, and any of them changes it")
  func sharedRollout() async throws {
    let database = try await StoreRig().fleet(.postgresql)
    let folders = try [Folder(["shop": "maxItem: 5"]), Folder(["shop": "maxItem: 5"])]
    let stores = try folders.map { try $0.store(in: database) }
    try FileManager.default.createDirectory(atPath: folders[0].files + "/next", withIntermediateDirectories: false)
    try folders[0].write("next/shop", "maxItem: 6")
    let begun = try await stores[0].change(.start(Rollout.Reach(percent: 50)), by: "operator")
    let chosen = { (value: Int) in
      var documents: [[String]] = []
      for (store, folder) in zip(stores, folders) {
        folder.time.advance(by: .seconds(1))
        var devices: [String] = []
        for number in 0..<40 {
          let body = try await store.answer(to: "till-\(number)", since: nil).body
          let document = try RemoteDocument(parsing: try RemoteEnvelope.open(body, publicKey: nil))
          if texts(document).first?.contains(":\(value)}") == true { devices.append("till-\(number)") }
        }
        documents.append(devices)
      }
      return documents
    }
    let half = try await chosen(6)
    #expect(half[0] == half[1] && (5...35).contains(half[0].count))
    // The second one did not look since: it must not undo the pause.
    _ = try await stores[0].change(.pause, by: "operator")
    let widened = try await stores[1].change(.widen(percent: 100, Rollout.Reach()), by: "operator")
    #expect(widened.id == begun.id && widened.event.state == .paused)
    _ = try await stores[1].change(.resume, by: "operator")
    #expect(try await chosen(6).map(\.count) == [40, 40])
    await #expect(throws: CollectorRefusal.self) { try await stores[1].change(.start(Rollout.Reach()), by: "operator") }
    _ = try await stores[1].change(.rollBack, by: "operator")
    #expect(try await chosen(5).map(\.count) == [40, 40])
  }

  @Test("a replica whose next/ never had a file does not end the rollout of it")
  func otherNextFolder() async throws {
    let database = try await StoreRig().fleet(.postgresql)
    let folders = try [Folder(["shop": "maxItem: 5"]), Folder(["shop": "maxItem: 5"])]
    let stores = try folders.map { try $0.store(in: database) }
    try FileManager.default.createDirectory(atPath: folders[0].files + "/next", withIntermediateDirectories: false)
    try folders[0].write("next/shop", "maxItem: 6")
    _ = try await stores[0].change(.start(Rollout.Reach(percent: 10)), by: "operator")
    // Another change of the namespace, at both. Each reads its folder again.
    for (folder, store) in zip(folders, stores) {
      try folder.write("shop", "maxItem: 4")
      _ = try await folder.ask(store, since: nil)
    }
    let again = try folders[1].store(in: database)
    _ = try await folders[1].ask(again, since: nil)
    #expect(await again.rollouts.active != nil)
    // It was corrected where it is, and moved.
    try folders[0].write("next/shop", nil)
    try folders[0].write("shop", "maxItem: 9")
    _ = try await folders[0].ask(stores[0], since: nil)
    #expect(await stores[0].rollouts.active == nil)
  }

  @Test("without its database a replica answers no device, and goes on when it is back")
  func unreachable() async throws {
    let (folder, rig) = (try Folder(["shop": "maxItem: 5"]), try await PostgreSQLRig())
    let target = try PostgreSQLTarget(uri: rig.server.uri("missing_\(rig.database)"))
    let store = try folder.store(in: .server(target))
    #expect(await store.version() == nil)
    await #expect(throws: CollectorRefusal.self) { try await store.answer(to: "d", since: nil) }
    try await rig.server.sql("CREATE DATABASE missing_\(rig.database) OWNER prism")
    folder.time.advance(by: .seconds(10))
    #expect(try await folder.ask(store, since: nil).namespaces.count == 1)
  }

  @Test("a time that it never gave, or over a thousand changes, is answered with `full`: ask for everything")
  func askAgain() async throws {
    let folder = try Folder([:])
    let store = try folder.store()
    let first = try await folder.ask(store, since: nil)
    let foreign = try await folder.ask(store, since: first.updateTime + 1)
    #expect(foreign.isFull && foreign.namespaces.isEmpty && foreign.since == first.updateTime + 1)
    for number in 0...1000 { try folder.write("n\(number)", "maxItem: 5") }
    let many = try await folder.ask(store, since: first.updateTime)
    #expect(many.isFull && many.namespaces.isEmpty)
    #expect(try await folder.ask(store, since: nil).namespaces.count == 1001)
    try folder.write("n0", nil)
    #expect(try await folder.ask(store, since: many.updateTime).namespaces.count == 1)
  }

  @Test("is signed by its key")
  func signed() async throws {
    let folder = try Folder(["shop": "maxItem: 5"])
    let store = try folder.store(signed: true)
    let time = try await folder.ask(store, since: nil).updateTime
    for since in [nil, time, 1] {
      let document = try await folder.ask(store, since: since, publicKey: Self.publicKey)
      let issueTime = try #require(document.issueTime)
      #expect((0...3_600_000).contains(folder.time.unixMilliseconds - issueTime))
      #expect(document.expireTime == issueTime + 86_400_000)
    }
    #expect(CollectorOptions.Remote(folder: "", signingKey: Secret([1])) == nil)
  }

  @Test("the whole answer is signed again before it expires, and after the clock was set")
  func signedAnew() async throws {
    let folder = try Folder(["shop": "maxItem: 5"])
    let store = try folder.store(signed: true)
    for step in [3_700_000, 86_400_000, -864_000_000] as [Int64] {
      folder.time.stepWallClock(milliseconds: step)
      let document = try await folder.ask(store, since: nil, publicKey: Self.publicKey)
      #expect(try #require(document.expireTime) - folder.time.unixMilliseconds > 80_000_000)
    }
  }

  @Test("a clock that was decades ahead costs no versions") func hostileClock() async throws {
    let folder = try Folder(["shop": "maxItem: 5"])
    let store = try folder.store(signed: true)
    let version = try #require(try await folder.ask(store, since: nil).version)
    folder.time.stepWallClock(milliseconds: 70 * 31_536_000_000)
    try folder.write("shop", "maxItem: 6")
    #expect(try await folder.ask(store, since: nil).version == version + 1)
    folder.time.stepWallClock(milliseconds: -70 * 31_536_000_000)
    try folder.write("shop", "maxItem: 7")
    let last = try await folder.ask(store, since: nil)
    #expect(last.version == version + 2 && last.namespaces.count == 1)
  }

  @Test("a fault in a file leaves what was served, until it is mended; at a start it is an end")
  func faults() async throws {
    let folder = try Folder(["shop": "maxItem: 5"])
    let store = try folder.store()
    let first = try await folder.ask(store, since: nil)
    try folder.write("shop", "maxItem: 6")
    try folder.write("bad", "maxItm: 5\nkeyId: x")
    #expect(try await folder.ask(store, since: first.updateTime).namespaces.isEmpty)
    #expect(await store.faults == 2)
    #expect(throws: ConfigurationFaults.self) { try folder.store() }
    try folder.write("bad", nil)
    #expect(
      texts(try await folder.ask(store, since: first.updateTime)) == [#"{"name":"shop","delFlag":0,"maxItem":6}"#])
    #expect(await store.faults == 0)
  }

  // MARK: Over HTTP

  private func get(
    _ collector: Collector, _ path: String, _ query: [(name: String, value: String)] = [], isLocal: Bool = true,
    token: String? = nil
  ) async -> HTTPResponse {
    let request = HTTPRequest(
      method: .get, path: path, query: query, headers: token.map { [("authorization", "Bearer \($0)")] } ?? [],
      peer: HTTPPeer(address: "", isLocal: isLocal))
    return path == "/devices" ? await collector.answerReader(request, isOwner: true) : await collector.answer(request)
  }

  @Test("a question is answered, written down and counted; packets' answers name the version")
  func overHTTP() async throws {
    let folder = try Folder(["shop": "maxItem: 5"])
    let tokens = folder.path + "/tokens"
    try "sender-token-of-tests\n".write(toFile: tokens, atomically: true, encoding: .utf8)
    let collector = try folder.collector(tokenFile: tokens)
    let answer = await get(collector, "/prism/config", [("deviceId", "d1")], token: "sender-token-of-tests")
    let document = try RemoteDocument(parsing: try RemoteEnvelope.open(answer.body, publicKey: nil))
    #expect(answer.status == 200 && document.namespaces.count == 1)
    let packet = try CollectorTests.request(
      CollectorTests.context(.meta), metas: [#"{"MONITOR_TYPE":"net"}"#],
      changing: ["authorization": "Bearer sender-token-of-tests"])
    let accepted = await collector.answer(packet)
    #expect(accepted.headers.first { $0.name == "Prism-Config-Version" }?.value == document.version.map { String($0) })

    let failed: [(name: String, value: String)] = [
      ("deviceId", "d2"), ("updateTime", String(document.updateTime)), ("lastApplied", "4"), ("lastFailed", "5"),
      ("reason", "shop.url:\n no"),
    ]
    _ = await get(collector, "/prism/config", failed, token: "sender-token-of-tests")
    let page = try JSONValue(parsing: await get(collector, "/devices").body)
    #expect(page["devices"]?.array?.count == 2 && page["next"] == "d2")
    let bad = try JSONValue(parsing: await get(collector, "/devices", [("failed", "true")]).body)
    #expect(bad["devices"]?.array?.count == 1)
    let device = try #require(bad["devices"]?.array?.first)
    #expect(device["device"] == "d2" && device["lastApplied"] == 4 && device["lastFailed"] == "5")
    #expect(device["reason"] == #"shop.url:\u{a} no"#)
    let metrics = await collector.metrics
    for line in [
      #"prism_collector_config_questions_total{outcome="whole"} 1"#,
      #"prism_collector_config_questions_total{outcome="unchanged"} 1"#, "prism_collector_config_devices 2",
      "prism_collector_config_devices_failed 1", "prism_collector_config_faults 0",
      "prism_collector_config_version \(document.version ?? 0)",
    ] { #expect(metrics.contains(line + "\n"), "\(line)") }
    #expect(try await Promtool.faults(in: metrics) == "")
  }

  @Test(
    "what is no question is refused",
    arguments: [
      [], [("deviceId", "a b")], [("deviceId", "d"), ("updateTime", "-1")], [("deviceId", "d"), ("version", "x")],
    ]
      as [[(String, String)]])
  func refused(query: [(String, String)]) async throws {
    let folder = try Folder([:])
    let collector = try folder.collector()
    let answer = await get(collector, "/prism/config", query.map { (name: $0.0, value: $0.1) })
    #expect(answer.status == 400)
  }

  @Test("a question asks for the token where there is one; without one it leaves no row and no line in the log")
  func access() async throws {
    let folder = try Folder([:])
    let tokens = folder.path + "/tokens"
    try "sender-token-of-tests\n".write(toFile: tokens, atomically: true, encoding: .utf8)
    let question: [(name: String, value: String)] = [("deviceId", "d"), ("lastFailed", "5"), ("reason", "forged")]
    do {
      let guarded = try folder.collector(tokenFile: tokens)
      #expect(await get(guarded, "/prism/config", question).status == 401)
      #expect(
        await get(guarded, "/prism/config", question, isLocal: false, token: "sender-token-of-tests").status == 200)
      #expect(try JSONValue(parsing: await get(guarded, "/devices").body)["devices"]?.array?.count == 1)
    }
    let other = try Folder([:])
    let open = try other.collector()
    #expect(await get(open, "/prism/config", question, isLocal: false).status == 200)
    #expect(try JSONValue(parsing: await get(open, "/devices").body)["devices"]?.array?.count == 0)
    let without = try Folder([:])
    let plain = try Collector(
      CollectorOptions(state: without.path, keys: ["main": CollectorTests.key]), log: Logger(write: { _ in }))
    #expect(await get(plain, "/prism/config", question).status == 404)
  }
}
