import Foundation
import PrismBase
import PrismHTTP
import PrismPacket
import PrismProtocol
import PrismTestSupport
import Testing

@testable import PrismCollector

@Suite("Jobs for many devices", .timeLimit(.minutes(3)))
struct JobTests {
  private let rig: PageRig
  private var collector: Collector { rig.collector }

  init() throws { rig = try PageRig() }

  private func post(_ path: String, _ body: String) async throws -> (status: Int, json: JSONValue) {
    let request = PageRig.request(
      "/api/v1" + path, method: .post, headers: [("content-type", "application/json")], body: body)
    let answer = await collector.answerReader(request, isOwner: true)
    return (answer.status, try JSONValue(parsing: answer.body))
  }

  private func send(_ device: String, in namespace: String = "shop") async throws {
    var random = SystemRandomNumberGenerator()
    let context = PacketContext(
      deviceID: device, namespace: NamespaceName(namespace)!,
      packetID: PacketID(unixMilliseconds: rig.rig.time.unixMilliseconds, using: &random), kind: .meta)
    var request = try CollectorTests.request(context, metas: ["{}"], sentTime: rig.rig.time.unixMilliseconds)
    request.headers.append((name: "authorization", value: "Bearer sender-token-of-tests"))
    #expect(await collector.answer(request).status == 200)
  }

  /// - Returns: its id.
  private func begin(_ more: String = "", devices: Int = 4) async throws -> String {
    for number in 0..<devices { try await send("d\(number)") }
    try await send("elsewhere", in: "other")
    let job = try await post("/jobs", #"{"namespace":"shop","where":"seen < 1d","command":"flush"\#(more)}"#)
    #expect(job.status == 200 && job.json["devices"]?["waiting"]?.int == devices, "\(job.json.text)")
    return try #require(job.json["id"]?.string)
  }

  private func step() async throws {
    try await JobRunner(collector: collector).look()
    rig.rig.time.advance(by: .seconds(5))
  }

  /// State, and devices that wait, got it, carried it out, and failed.
  private func state(_ id: String) async throws -> String {
    let job = try await rig.json("/jobs/\(id)")["job"]
    let counts = ["waiting", "sent", "done", "failed"].map { "\(job?["devices"]?[$0]?.int ?? -1)" }
    return ([job?["state"]?.string ?? "-"] + counts).joined(separator: " ")
  }

  private func commands(of device: String) async throws -> [JSONValue] {
    try await rig.json("/records/shop/prism.command", [("device", device)])["records"]?.array ?? []
  }

  /// The device answers its command.
  private func answer(_ device: String, _ state: String, job: String) async throws {
    let id = try #require(CommandRequest.id(of: job, for: device))
    let place = RecordPlace(namespace: NamespaceName("shop")!, table: .command, device: device)
    let change = RecordChange(
      id: id, action: .patch(["state": .string(state), "stateTime": 1, "result": .string("it \(state)")]))
    _ = try await collector.store.change([change], of: place, if: .always)
  }

  @Test("devices get a command at the job's rate, each once, and the job is done when all have answered")
  func rate() async throws {
    let job = try await begin(#","perMinute":24"#)
    try await step()
    #expect(try await state(job) == "running 2 2 0 0")
    try await JobRunner(collector: collector).look()
    try await step()
    #expect(try await state(job) == "running 0 4 0 0")
    for number in 0..<4 {
      #expect(try await commands(of: "d\(number)").count == 1)
      try await answer("d\(number)", number == 0 ? "failed" : "done", job: job)
    }
    #expect(try await commands(of: "elsewhere").isEmpty)
    try await step()
    #expect(try await state(job) == "done 0 0 3 1")
    let failed = try await rig.json("/jobs/\(job)", [("progress", "failed")])["devices"]?.array
    #expect(failed?.map { $0["device"]?.string } == ["d0"] && failed?[0]["result"] == "it failed")
    await collector.close()
  }

  @Test("a job stops when too many devices failed, and goes on when an operator says so")
  func stops() async throws {
    let job = try await begin(#","perMinute":24,"failuresMax":1"#)
    try await step()
    for device in ["d0", "d1"] { try await answer(device, "refused", job: job) }
    try await step()
    try await step()
    #expect(try await state(job) == "stopped 2 0 0 2")
    #expect(try await post("/jobs/\(job)", #"{"action":"resume"}"#).status == 200)
    try await step()
    #expect(try await state(job) == "running 0 2 0 2")
    #expect(try await post("/jobs/\(job)", #"{"action":"cancel"}"#).status == 200)
    #expect(try await post("/jobs/\(job)", #"{"action":"resume"}"#).status == 409)
    await collector.close()
  }

  @Test("a paused job sends nothing, and what was not sent in time is never sent")
  func expires() async throws {
    let job = try await begin(#","perMinute":12"#)
    #expect(try await post("/jobs/\(job)", #"{"action":"pause"}"#).status == 200)
    try await step()
    #expect(try await state(job) == "paused 4 0 0 0")
    #expect(try await post("/jobs/\(job)", #"{"action":"resume"}"#).status == 200)
    try await step()
    rig.rig.time.advance(by: .seconds(3600))
    try await step()
    #expect(try await state(job) == "running 3 1 0 0", "its time is over for less than an hour")
    rig.rig.time.advance(by: .seconds(3600))
    try await step()
    #expect(try await state(job) == "expired 3 0 0 1")
    await collector.close()
  }

  @Test("a clock that is ahead for a while ends no job, and nothing is sent then")
  func clockAhead() async throws {
    let job = try await begin(#","perMinute":12"#)
    try await step()
    let ahead: Int64 = 60 * 86_400_000
    rig.rig.time.stepWallClock(milliseconds: ahead)
    for _ in 0..<3 { try await step() }
    #expect(try await state(job) == "running 3 1 0 0")
    rig.rig.time.stepWallClock(milliseconds: -ahead)
    for _ in 0..<2 { try await step() }
    #expect(try await state(job) == "running 1 3 0 0")
    await collector.close()
  }

  @Test("a collector that dies between the command and its note sends no second one", arguments: [0, 1])
  func killed(signed: Int) async throws {
    let job = try await begin(devices: 1)
    let known = try #require(try await collector.access.page.jobs.job(job))
    let (place, change, condition) = try #require(known.change(for: Job.Device(id: "d0", changedTime: 0)))
    let records = collector.store
    if signed == 1 { _ = try await records.change([change], of: place, if: condition) }
    try await step()
    #expect(try await state(job) == "running 0 1 0 0")
    #expect(try await commands(of: "d0").count == 1)
    await collector.close()
  }

  @Test(
    "a new job takes the place of one of its namespace that ended, and of no other", arguments: StoreRig.Fleet.allCases)
  func room(kind: StoreRig.Fleet) async throws {
    let rig = StoreRig()
    let fleet = try await rig.fleet(kind)
    try fleet.prepare()
    let store = JobStore(fleet)
    func add(_ id: String, of namespace: String = "shop", madeTime: Int64 = 5) async throws -> JobStore.Addition {
      let job = Job(
        id: id, namespace: NamespaceName(namespace)!, who: "w", expression: "seen < 1d", change: .command(.flush, [:]),
        madeTime: madeTime, expireTime: 100, perMinute: 60, failuresMax: 1, dueTime: 1)
      return try await store.add(job, [Job.Device(id: "d", changedTime: 1)])
    }
    #expect(try await add("bank", of: "bank", madeTime: 1) == .added)
    for number in 0..<JobStore.countMax { #expect(try await add("\(number)") == .added) }
    #expect(try await add("more") == .isFull)
    let ended = try #require(try await store.job("7"))
    #expect(try await store.change(ended, to: .cancelled))
    // By a clock that is behind it is the oldest of all.
    #expect(try await add("late", madeTime: 0) == .added)
    let left = Set(try await store.all().map(\.id))
    #expect(left.count == JobStore.countMax + 1 && left.isSuperset(of: ["bank", "late"]) && !left.contains("7"))
    #expect(try await store.counts()["7"] == nil)
  }

  @Test("of two collectors one does a step", arguments: StoreRig.Fleet.allCases)
  func claims(kind: StoreRig.Fleet) async throws {
    let folder = StoreRig()
    let fleet = try await folder.fleet(kind)
    try fleet.prepare()
    let (one, other) = (JobStore(fleet), JobStore(fleet))
    let job = Job(
      id: "a", namespace: NamespaceName("shop")!, who: "w", expression: "seen < 1d", change: .command(.flush, [:]),
      madeTime: 1, expireTime: 100, perMinute: 60, failuresMax: 1, dueTime: 1)
    let device = Job.Device(id: "d", changedTime: 1)
    #expect(try await one.add(job, [device]) == .added)
    #expect(try await other.add(job, [device]) == .isThere)
    let (seen, again) = (try #require(try await one.job("a")), try #require(try await other.all().first))
    #expect(seen == job && again == job)
    #expect(try await one.claim(seen, until: 6))
    #expect(try await !other.claim(again, until: 6))
    #expect(try await other.counts()["a"] == [.waiting: 1])
    #expect(try await other.change(again, to: .paused))
    #expect(try await !one.change(seen, to: .cancelled))
  }

  @Test(
    "a job that no device could carry out is refused",
    arguments: [
      (#""where":"x = 1","command":"flush""#, 400), (#""where":"seen < 1d","command":"fly""#, 400),
      (#""where":"seen < 1d""#, 400), (#""where":"device = nobody","command":"flush""#, 422),
      (#""where":"seen < 1d","command":"flush","perMinute":0"#, 400),
      (#""where":"seen < 1d","command":"flush","expireTime":1"#, 400),
      (#""where":"seen < 1d","table":"t","record":"r","fields":{},"delete":true"#, 400),
    ])
  func refused(body: String, status: Int) async throws {
    try await send("d0")
    #expect(try await post("/jobs", #"{"namespace":"shop",\#(body)}"#).status == status)
    await collector.close()
  }

  @Test("a record is changed on many devices")
  func records() async throws {
    for number in 0..<3 { try await send("d\(number)") }
    let job = try await post(
      "/jobs", #"{"namespace":"shop","where":"device = d*","table":"prices","record":"p1","patch":{"cent":5}}"#)
    try await step()
    #expect(try await state(job.json["id"]?.string ?? "") == "done 0 0 3 0")
    let found = try await rig.json("/records/shop/prices", [("field", "cent = 5")])["records"]?.array
    #expect(found?.compactMap { $0["device"]?.string }.sorted() == ["d0", "d1", "d2"])
    await collector.close()
  }
}
