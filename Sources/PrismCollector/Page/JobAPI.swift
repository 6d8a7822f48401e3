import PrismBase
import PrismHTTP
import PrismProtocol

struct JobAPI: PageAnswers {
  private static let members: KeyValuePairs<String, MemberForm> = [
    "id": .text, "namespace": .text, "where": .text, "command": .text, "args": .object, "table": .text,
    "fields": .object, "patch": .object, "delete": .flag, "record": .text, "expireTime": .number, "perMinute": .number,
    "failuresMax": .number, "signatures": .object,
  ]
  private static let bodyBytesMax = 8 * 1_048_576

  let api: PageAPI

  private var collector: Collector { api.collector }
  private var jobs: JobStore { collector.access.page.jobs }

  // MARK: Reading

  /// `GET /jobs`: those of the reader's namespaces, the newest first.
  func list(_ request: PageRequest) async throws(CollectorRefusal) -> HTTPResponse {
    let (all, counts) = try await api.ask { () throws(StoreFailure) in (try await jobs.all(), try await jobs.counts()) }
    return PageAPI.json([
      "jobs": all.filter { request.scope.has($0.namespace.text) }.map { Self.described($0, counts[$0.id] ?? [:]) }
    ])
  }

  /// `GET /jobs/{id}`: a job, and a page of its devices.
  func job(_ request: PageRequest) async throws(CollectorRefusal) -> HTTPResponse {
    let limit = try request.number("limit", in: 1...1000) ?? 100
    let progress = try request.word("progress", Job.Progress.self)
    let (job, after) = (try await found(request), request.http.parameter("after") ?? "")
    let (counts, devices) = try await api.ask { () throws(StoreFailure) in
      (try await jobs.counts(of: job.id), try await jobs.devices(of: job.id, progress, after: after, limit: limit))
    }
    return PageAPI.json([
      "job": Self.described(job, counts[job.id] ?? [:]),
      "devices": devices.map {
        JSONValue([
          "device": $0.id, "progress": $0.progress.rawValue, "result": $0.result, "changedTime": $0.changedTime,
        ])
      }, "next": devices.count == limit ? devices.last?.id : nil,
    ])
  }

  private func found(_ request: PageRequest) async throws(CollectorRefusal) -> Job {
    let job = try await api.ask { () throws(StoreFailure) in try await jobs.job(request.parts[0]) }
    guard let job, request.scope.has(job.namespace.text) else { throw CollectorRefusal(404, "there is no such job") }
    return job
  }

  private static func described(_ job: Job, _ counts: [Job.Progress: Int]) -> JSONValue {
    JSONValue([
      "id": job.id, "namespace": job.namespace.text, "who": job.who, "where": job.expression, "change": job.change.json,
      "madeTime": job.madeTime, "expireTime": job.expireTime, "perMinute": job.perMinute,
      "failuresMax": job.failuresMax, "state": job.state.rawValue,
      "devices": JSONValue.object(Job.Progress.allCases.map { .init($0.rawValue, .int(counts[$0] ?? 0)) }),
    ])
  }

  // MARK: Changing

  /// `POST /jobs`: the devices are those that the expression chooses now.
  func start(_ request: PageRequest) async throws(CollectorRefusal) -> HTTPResponse {
    let body = try PageAPI.body(request, known: Self.members, bytesMax: Self.bodyBytesMax)
    guard let namespace = body["namespace"]?.string.flatMap({ NamespaceName($0) }) else {
      throw CollectorRefusal(400, "namespace: must be the name of a namespace")
    }
    guard request.scope.has(namespace.text) else { throw CollectorRefusal(403, "this token is for other namespaces") }
    let now = collector.time.unixMilliseconds
    let job = try Self.job(body, namespace, by: request.reader?.name ?? "", now: now)
    let devices = try await chosen(job, body["signatures"], request.scope, now)
    try check(job, devices[0], now)
    switch try await api.ask({ () throws(StoreFailure) in try await jobs.add(job, devices) }) {
    case .added: break
    case .isThere: throw CollectorRefusal(409, "id: there is a job of this id")
    case .isFull:
      throw CollectorRefusal(409, "\(JobStore.countMax) jobs of \(namespace) go on, the most that may: end one of them")
    }
    api.note(request, did: "began a job for \(devices.count) devices", to: "\(namespace) \(job.change.json.text)")
    return PageAPI.json(of: Self.described(job, [.waiting: devices.count]))
  }

  private static func job(
    _ body: JSONValue, _ namespace: NamespaceName, by who: String, now: Int64
  ) throws(CollectorRefusal) -> Job {
    guard let expression = body["where"]?.string else {
      throw CollectorRefusal(400, "where: must be an expression that chooses devices; `device = *` chooses all")
    }
    let id = body["id"]?.string ?? CommandRequest.id(of: Hex.random(byteCount: 16), for: "")?.text ?? ""
    guard id.utf8.count == 36, RecordID(id) != nil else { throw CollectorRefusal(400, "id: must be a UUID") }
    let (latest, hour) = (now + Int64(CommandRequest.lifetimeDaysMax) * 86_400_000, Int64(3_600_000))
    guard let expireTime = body["expireTime"].map({ $0.int.map { Int64($0) } }) ?? now + hour,
      expireTime > now, expireTime <= latest
    else {
      throw CollectorRefusal(
        400, "expireTime: must be milliseconds since 1970, within \(CommandRequest.lifetimeDaysMax) days")
    }
    guard let perMinute = body["perMinute"].map({ $0.int }) ?? 600, Job.perMinute.contains(perMinute) else {
      throw CollectorRefusal(400, "perMinute: must be a whole number from 1 to \(Job.perMinute.upperBound)")
    }
    guard let failuresMax = body["failuresMax"].map({ $0.int }) ?? 10, (0...Job.devicesMax).contains(failuresMax) else {
      throw CollectorRefusal(400, "failuresMax: must be a whole number from 0 to \(Job.devicesMax)")
    }
    return Job(
      id: id, namespace: namespace, who: who, expression: expression,
      change: try Job.Change(body, in: namespace), madeTime: now, expireTime: expireTime, perMinute: perMinute,
      failuresMax: failuresMax, dueTime: now)
  }

  /// The devices of the expression that have the job's namespace. With signatures, those that have one.
  private func chosen(
    _ job: Job, _ signatures: JSONValue?, _ scope: Scope, _ now: Int64
  ) async throws(CollectorRefusal) -> [Job.Device] {
    let wanted = try DeviceExpression.asked(job.expression)
    let all = try await DeviceAPI(api: api).devices(of: scope)
    let signed = signatures?.object.map { members in
      Dictionary(members.map { ($0.key, $0.value.string ?? "") }) { $1 }
    }
    let found = all.filter { device in
      device.namespaces.contains(job.namespace.text) && wanted.includes(device, now: now)
        && (signed == nil || signed?[device.device] != nil)
    }
    guard !found.isEmpty else { throw CollectorRefusal(422, "where: chooses no device that sends to this namespace") }
    guard found.count <= Job.devicesMax else {
      throw CollectorRefusal(
        422, "where: chooses \(found.count) devices, at most \(Job.devicesMax) are taken; choose a part of them")
    }
    return found.map { Job.Device(id: $0.device, signature: signed?[$0.device], changedTime: now) }
  }

  /// A change that the first device would not get is said at once.
  private func check(_ job: Job, _ device: Job.Device, _ now: Int64) throws(CollectorRefusal) {
    guard let (place, change, condition) = job.change(for: device) else { throw .unreadable }
    _ = try CommandRule(place, now: now).check([change], condition)
  }

  /// `POST /jobs/{id}` with `{"action": …}`.
  func change(_ request: PageRequest) async throws(CollectorRefusal) -> HTTPResponse {
    let actions: [String: Job.State] = ["pause": .paused, "resume": .running, "cancel": .cancelled]
    let body = try PageAPI.body(request, known: ["action": .text])
    guard let action = body["action"]?.string, let state = actions[action] else {
      throw CollectorRefusal(400, "action: must be one of \(actions.keys.sorted().joined(separator: ", "))")
    }
    let job = try await found(request)
    let isChanged = try await api.ask { () throws(StoreFailure) in
      // One that goes on may fail as often again.
      let failed = try await jobs.counts(of: job.id)[job.id]?[.failed] ?? 0
      let failuresMax = job.state == .stopped && state == .running ? failed + job.failuresMax : job.failuresMax
      return job.state.mayChange ? try await jobs.change(job, to: state, failuresMax: failuresMax) : false
    }
    guard isChanged else { throw CollectorRefusal(409, "the job is \(job.state.rawValue), or was changed meanwhile") }
    api.note(request, did: "job: \(action)", to: job.id)
    return PageAPI.json(["id": job.id, "state": state.rawValue])
  }
}
