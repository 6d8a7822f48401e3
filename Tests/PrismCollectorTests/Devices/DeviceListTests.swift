import Foundation
import PrismBase
import PrismHTTP
import PrismPacket
import PrismProtocol
import PrismSQL
import PrismSQLite
import PrismTestSupport
import Synchronization
import Testing

@testable import PrismCollector

@Suite("The list of devices", .timeLimit(.minutes(3)))
struct DeviceListTests {
  private let rig = StoreRig()

  private func collector(_ kind: StoreRig.Fleet) async throws -> Collector {
    var options = CollectorOptions(state: rig.path, keys: ["main": CollectorTests.key])
    if kind == .postgresql {
      let database = try await PostgreSQLRig()
      options.store = try PostgreSQLTarget(uri: database.server.uri(database.database, user: "prism", others: []))
    }
    return try Collector(options, time: rig.time, log: rig.log)
  }

  private func ask(
    _ collector: Collector, _ path: String, _ query: [(name: String, value: String)] = [],
    method: HTTPRequest.Method = .get, type: String? = nil, body: String = ""
  ) async throws -> (status: Int, json: JSONValue) {
    let answer = await collector.answerReader(
      PageRig.request(
        "/api/v1" + path, query, method: method, headers: type.map { [("content-type", $0)] } ?? [], body: body),
      isOwner: true)
    return (answer.status, try JSONValue(parsing: answer.body))
  }

  private func found(
    _ collector: Collector, _ expression: String = "", sort: String = "device"
  ) async throws -> [String] {
    let answer = try await ask(collector, "/devices", [("where", expression), ("sort", sort)]).json
    let devices = answer["devices"]?.array ?? []
    #expect(answer["total"]?.int == devices.count)
    return devices.compactMap { $0["device"]?.string }
  }

  @Test(
    "a page begins behind the place of the one before, however many devices come meanwhile",
    arguments: ["seen", "device"])
  func pages(sort: String) async throws {
    let collector = try await collector(.sqlite)
    for number in 10..<20 {
      try await send(collector, "d\(number)", [Self.app("1")])
      rig.time.advance(by: .seconds(60))
    }
    var (found, after): ([String], String) = ([], "")
    repeat {
      let query = [("sort", sort), ("limit", "3"), ("after", after)].map { (name: $0.0, value: $0.1) }
      let page = try await ask(collector, "/devices", query).json
      found += (page["devices"]?.array ?? []).compactMap { $0["device"]?.string }
      after = page["next"]?.string ?? ""
      // Before and behind the place, by either order.
      for name in ["a\(found.count)", "z\(found.count)"] { try await send(collector, name, [Self.app("1")]) }
      rig.time.advance(by: .seconds(60))
    } while !after.isEmpty && found.count < 100
    let known = found.filter { $0.hasPrefix("d") }
    #expect(known.sorted() == (10..<20).map { "d\($0)" } && Set(found).count == found.count, "\(found)")
    #expect(try await ask(collector, "/devices", [("after", "25")]).status == 400)
    await collector.close()
  }

  @discardableResult
  private func send(
    _ collector: Collector, _ device: String, _ metas: [String], in namespace: String = "prism", ledger: String = ""
  ) async throws -> Int {
    var random = SystemRandomNumberGenerator()
    let context = PacketContext(
      deviceID: device, namespace: NamespaceName(namespace)!,
      packetID: PacketID(unixMilliseconds: rig.time.unixMilliseconds, using: &random), kind: .meta)
    let request = try CollectorTests.request(
      context, metas: metas, ledger: ledger, sentTime: rig.time.unixMilliseconds)
    return await collector.answer(request).status
  }

  private static func app(_ version: String, type: String = "start") -> String {
    #"{"MONITOR_TYPE":"\#(type)","APP_NAME":"till","APP_VERSION":"\#(version)"}"#
  }

  @Test("shows the app, its version and the last crash, also after a restart", arguments: StoreRig.Fleet.allCases)
  func facts(kind: StoreRig.Fleet) async throws {
    let collector = try await collector(kind)
    #expect(try await send(collector, "d1", [Self.app("1.9"), Self.app("1.10")]) == 200)
    #expect(try await send(collector, "d2", [Self.app("1.9", type: "appCrash")], in: "shop") == 200)
    #expect(try await send(collector, "d3", [#"{"MONITOR_TYPE":"t"}"#]) == 200)
    #expect(try await found(collector, "version >= 1.10") == ["d1"])
    #expect(try await found(collector, "crash < 1h") == ["d2"])
    #expect(try await found(collector, sort: "crash") == ["d2", "d1", "d3"])
    // A packet that says less takes nothing away.
    try await send(collector, "d1", [#"{"MONITOR_TYPE":"t"}"#])
    try await send(collector, "d2", [Self.app("2.0")], in: "shop")
    await collector.close()
    let again = try Collector(collector.options, time: rig.time, log: rig.log)
    try await send(again, "d1", [#"{"MONITOR_TYPE":"t"}"#])
    let devices = try await ask(again, "/devices", [("sort", "device")]).json["devices"]?.array ?? []
    #expect(devices.map { $0["version"] } == ["1.10", "2.0", ""])
    #expect(devices.map { $0["app"] } == ["till", "till", ""])
    #expect(devices.map { $0["crashTime"]?.int != nil } == [false, true, false])
    await again.close()
  }

  @Test("finds silent devices, counts them, and sorts the longest silent first", arguments: StoreRig.Fleet.allCases)
  func silent(kind: StoreRig.Fleet) async throws {
    let collector = try await collector(kind)
    for device in ["a", "b", "c"] {
      try await send(collector, device, [Self.app("1")])
      if kind == .sqlite { rig.time.advance(by: .seconds(86_400)) }
    }
    // The time of a server's database is that of the machine.
    let order = try await found(collector, sort: "silent")
    #expect(order.first == "a" && order.count == 3)
    guard kind == .sqlite else { return await collector.close() }
    #expect(order == ["a", "b", "c"])
    #expect(try await found(collector, "seen > 36h") == ["a", "b"])
    try await send(collector, "b", [Self.app("1")])
    #expect(try await found(collector, "seen > 36h") == ["a"])
    #expect(try await ask(collector, "/fleet").json["devices"]?["silent"] == 2)
    await collector.close()
  }

  @Test("the list of a large fleet is read again behind the answer, and a change of tags is in the next one")
  func index() async throws {
    let index = DeviceIndex()
    let reads = Mutex(0)
    let count = DeviceIndex.smallMax + 1
    let read: DeviceIndex.Read = {
      let number = reads.withLock { count in
        count += 1
        return count
      }
      return DeviceList(devices: (0..<count).map { DeviceSummary(device: "\(number).\($0)") })
    }
    func first(_ seconds: Int) async throws -> String? {
      try await index.list(now: .seconds(seconds), read).devices.first?.device
    }
    #expect(try await first(0) == "1.0")
    #expect(try await first(1) == "1.0")
    #expect(try await first(3) == "1.0", "the answer does not wait for the next list")
    while try await first(4) != "2.0" { await Task.yield() }
    index.change()
    #expect(try await first(4) == "3.0")
    #expect(try await first(64) == "4.0", "a list is at most a minute old")
  }

  @Test("an expression with a fault is answered with its reason")
  func faults() async throws {
    let collector = try await collector(.sqlite)
    let answer = try await ask(collector, "/devices", [("where", "region = eu")])
    #expect(answer.status == 400)
    #expect(answer.json["detail"]?.string?.hasPrefix("where: the expression has the fact `region`") == true)
    await collector.close()
  }

  // MARK: Tags

  private func tag(
    _ collector: Collector, _ device: String?, _ patch: String, id: String = "operator", in namespace: String = "prism"
  ) async throws -> (status: Int, json: JSONValue) {
    try await ask(
      collector, "/records/\(namespace)/prism.tags/\(id)", device.map { [("device", $0)] } ?? [], method: .patch,
      type: "application/merge-patch+json", body: patch)
  }

  private static func operation(
    _ id: String, _ fields: JSONValue, serverID: String? = nil, kind: RecordOperation.Kind = .insert
  ) -> RecordOperation {
    RecordOperation(
      op: "\(id).\(kind)", table: .tags, id: RecordID(id)!, serverID: serverID.flatMap { RecordID($0) }, kind: kind,
      fields: kind == .delete ? nil : fields, version: 1, changedTime: 1)
  }

  @Test(
    "an operator's tag counts before the token's, and that before the device's own", arguments: StoreRig.Fleet.allCases)
  func sources(kind: StoreRig.Fleet) async throws {
    let collector = try await collector(kind)
    for device in ["d", "e"] { try await send(collector, device, [Self.app("1")], in: "shop") }
    _ = try await collector.store.take(
      RecordRig.packet([Self.operation("device", ["a": "file", "b": "file", "c": "file"])]), isLate: true)
    let token = RecordChange(id: DeviceTags.Source.enrollment.id, action: .put(["b": "token", "c": "token"]))
    _ = try await collector.store.change(
      [token], of: RecordPlace(namespace: .prism, table: .tags, device: "d"), if: .always)
    #expect(try await tag(collector, "d", #"{"c":"operator"}"#).status == 201)
    #expect(try await found(collector, "tag.a = file and tag.b = token and tag.c = operator") == ["d"])
    #expect(try await tag(collector, "d", #"{"c":null,"x":"y"}"#).status == 200)
    #expect(try await found(collector, "tag.c = token and tag.x = y") == ["d"])
    #expect(try await found(collector, "not tag.x") == ["e"])
    await collector.close()
  }

  @Test("texts that are no tags are refused, and no more than 32 are taken", arguments: StoreRig.Fleet.allCases)
  func refused(kind: StoreRig.Fleet) async throws {
    let collector = try await collector(kind)
    for patch in [#"{"a":1}"#, #"{"":"b"}"#, #"{"a b":"c"}"#, #"{"a":""}"#, #"{"a":"b\n"}"#, #"{"a":{"b":"c"}}"#] {
      #expect(try await tag(collector, "d", patch).status == 422, "\(patch)")
    }
    #expect(try await tag(collector, "d", "{\"a\":\"\(String(repeating: "x", count: 129))\"}").status == 422)
    #expect(try await tag(collector, nil, #"{"a":"b"}"#).status == 422)
    #expect(try await tag(collector, "d", #"{"a":"b"}"#, id: "device").status == 422)
    #expect(try await tag(collector, "d", #"{"a":"b"}"#, id: "other").status == 422)
    for number in 1...32 { #expect(try await tag(collector, "d", "{\"t\(number)\":\"x\"}").status < 300) }
    #expect(try await tag(collector, "d", #"{"t33":"x"}"#).status == 422)
    #expect(try await tag(collector, "d", #"{"t33":"x","t1":null}"#).status == 200)
    await collector.close()
  }

  @Test("a device writes the record of its own file only", arguments: StoreRig.Fleet.allCases)
  func ownRecord(kind: StoreRig.Fleet) async throws {
    let collector = try await collector(kind)
    try await send(collector, "d", [Self.app("1")], in: "shop")
    _ = try await tag(collector, "d", #"{"ring":"late"}"#, in: "shop")
    let operations = [
      Self.operation("operator", ["ring": "early"]), Self.operation("x", ["ring": "early"], serverID: "operator"),
      Self.operation("device", ["a": 1]), Self.operation("operator", .null, kind: .delete),
      Self.operation("enrollment", ["ring": "early"]),
    ]
    let outcome = try await collector.store.take(RecordRig.packet(operations), isLate: true)
    guard case .applied(let applied)? = outcome else { throw RecordRigFault() }
    #expect(applied.receipt.refused.map(\.op) == operations.map(\.op))
    #expect(try await found(collector, "tag.ring = late") == ["d"])
    await collector.close()
  }

  @Test("records are found by value over all devices, page after page", arguments: StoreRig.Fleet.allCases)
  func records(kind: StoreRig.Fleet) async throws {
    let collector = try await collector(kind)
    let records = collector.store
    for device in 0..<5 {
      let changes = (0..<300).map {
        RecordChange(id: RecordID("r\($0)")!, action: .put(["n": .int($0), "of": ["d": .string("d\(device)")]]))
      }
      let place = RecordPlace(namespace: .prism, table: RecordTableName("part")!, device: "d\(device)")
      _ = try await records.change(changes, of: place, if: .always)
    }
    func pages(_ query: [(name: String, value: String)]) async throws -> (devices: [String], pages: Int) {
      var (devices, after, pages) = ([String](), 0, 0)
      while true {
        let answer = try await ask(collector, "/records/prism/part", query + [("after", "\(after)")]).json
        devices += (answer["records"]?.array ?? []).compactMap { $0["device"]?.string }
        pages += 1
        guard let next = answer["next"]?.int else { return (devices, pages) }
        after = next
      }
    }
    #expect(try await pages([("limit", "1000")]).devices.count == 1500)
    let found = try await pages([("field", "n >= 298"), ("limit", "3")])
    #expect(found.devices.sorted() == (0..<5).flatMap { ["d\($0)", "d\($0)"] } && found.pages == 4)
    #expect(try await pages([("field", "of.d = d3"), ("field", "n < 2")]).devices == ["d3", "d3"])
    #expect(try await pages([("field", "n > 1000")]).devices.isEmpty)
    #expect(
      try await ask(collector, "/records/prism/part", [("field", "n = 1"), ("device", "d2")]).json["records"]?.array?
        .count == 1)
    #expect(try await ask(collector, "/records/prism/part", [("field", "n 1")]).status == 400)
    await collector.close()
  }

  // MARK: Versions

  @Test("databases of version 0.2.0 are brought to this one with what they hold", arguments: StoreRig.Fleet.allCases)
  func migration(kind: StoreRig.Fleet) async throws {
    let database = try await rig.fleet(kind)
    let (_, token) = EnrollmentToken.new(keyID: "main", devicesMax: 3, expireTime: 7)
    try await DeviceStore(database).add(token)
    switch database {
    case .folder(let folder):
      let connection = try SQLiteConnection(.init(path: folder + "/fleet.db"))
      try connection.execute(StoreRig.fleetOfFirstVersion + "PRAGMA user_version = 2")
    case .server(let target):
      let connection = try PostgreSQLSetup(target: target, deadline: .seconds(60)).connect()
      try connection.execute(PostgreSQLRig.firstVersion, by: Deadline(.seconds(60)))
    }
    let tags = try #require(DeviceTags(["region": "eu"]))
    let (_, other) = EnrollmentToken.new(keyID: "main", devicesMax: 1, expireTime: 8, tags: tags)
    let store = DeviceStore(database)
    try await store.add(other)
    #expect(try await store.tokens() == [token, other])
    let facts = DeviceFacts(in: database, time: rig.time, log: rig.log)
    facts.note(try StoreRig.packet([1], members: { _ in #""APP_NAME":"till","APP_VERSION":"3""# }))
    facts.note(try StoreRig.packet([2], members: { _ in #""APP_VERSION":"7""# }))
    #expect(try await facts.all().values.map(\.version) == ["3"], "the second one is of no app")
  }

  @Test("a flood of devices is noted within bounds, and each is written down once it comes again")
  func flood() async throws {
    let facts = DeviceFacts(in: .folder(rig.path), time: rig.time, log: rig.log)
    let packets = try (0..<10_500).map {
      try StoreRig.packet([1], device: "d\($0)", members: { _ in #""APP_NAME":"till""# })
    }
    for packet in packets { facts.note(packet) }
    #expect(try await facts.all().count == 10_000)
    for packet in packets { facts.note(packet) }
    #expect(try await facts.all().count == 10_500)
  }
}
