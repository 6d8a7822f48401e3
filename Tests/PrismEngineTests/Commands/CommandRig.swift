import PrismBase
import PrismConfig
import PrismPacket
import PrismProtocol
import PrismStore
import PrismTestSupport
import Synchronization

@testable import PrismEngine

/// A server's table of commands, a real engine with its store, and tools that a test scripts.
final class CommandRig: Sendable {
  static let shop = NamespaceName("shop")!
  static let key = SigningKey(
    pem: Array(
      """
      -----BEGIN PRIVATE KEY-----
      MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g
      -----END PRIVATE KEY-----

      """.utf8))!

  let rig = DeliveryRig()
  let tools = ScriptedTools()
  private let log = Mutex<[String]>([])
  private let operations = Mutex<[DownOperation]>([])

  var lines: [String] { log.withLock { $0 } }

  /// The operator's clock, which is the server's; the device's own is that of `rig.time`.
  let serverAhead: Int64
  /// A step of the server's clock.
  private let step = Mutex<Duration>(.zero)
  var serverNow: Int64 { rig.time.unixMilliseconds + serverAhead + Int64(step.withLock { $0 } / .milliseconds(1)) }

  let death = CommandDeath()

  init(serverAhead: Duration = .zero) {
    self.serverAhead = Int64(serverAhead / .milliseconds(1))
    let (death, transport) = (death, rig.transport)
    death.folder.withLock { $0 = rig.folder }
    tools.passes { death.passes($0) }
    transport.set { request in
      if death.isOver { return ScriptedTransport.failure(.connect, mayHaveLeft: false) }
      if Self.states(in: request).contains(where: { $0.state.isFinal }) { death.passes(.uploaded) }
      if death.isOver { return ScriptedTransport.failure(.timeout, mayHaveLeft: true) }
      return await ScriptedTransport.accept(request)
    }
  }

  static func rules(_ change: (inout DaemonConfiguration.Commands) -> Void = { _ in }) -> DaemonConfiguration.Commands {
    var rules = DaemonConfiguration.Commands()
    rules.allow = Set(CommandName.allCases)
    rules.files = ["/var/log/*.log", "/opt/app/state.json"]
    rules.units = ["restart-till"]
    change(&rules)
    return rules
  }

  static func snapshot(_ rules: DaemonConfiguration.Commands) -> Snapshot {
    var snapshot = DeliveryRig.snapshot {
      $0.hasCommands = !rules.allow.isEmpty
      $0.recordInterval = .seconds(10)
      var kept = MonitoredType(ReportType(entry: "trace.*")!)
      kept.keep = .ring
      $0.monitorList += [MonitoredType(.ringHealth), MonitoredType(.appCrash), kept]
    }
    snapshot.daemon.commands = rules
    return snapshot
  }

  /// Runs a daemon's engine with its commands over the database that the last one left, until `body` ends or throws.
  func run(
    _ rules: DaemonConfiguration.Commands = rules(), _ body: (Engine, CommandHandler) async throws -> Void
  ) async throws {
    let downloads = ScriptedDownloads(now: { [self] in serverNow }, { [self] question in answer(question) })
    let logger = Logger(write: { [self] line in
      log.withLock { $0.append(line) }
      if line.contains(" a command begins ") { death.passes(.begins) }
      if line.contains(" a command ended ") { death.passes(.ended) }
    })
    let engine = try await rig.engine(Self.snapshot(rules), downloads: downloads, log: logger)
    let handler = CommandHandler(engine: engine, tools: tools)
    await engine.observeRecords { [weak handler] in handler?.changed($0) }
    await handler.start()
    let result = await Result { try await body(engine, handler) }
    await handler.stop()
    await engine.stop()
    // The end of a command that the stop interrupted is not written down, as that of a daemon that died.
    tools.go()
    death.leave()
    try result.get()
  }

  private func answer(_ question: DownQuestion) -> ScriptedDownloads.Answer {
    guard question.table == .command, let after = question.after else {
      return .lines([.head(DownHead(isFull: true, sequence: 1, count: 0))])
    }
    let later = operations.withLock { $0.filter { $0.sequence > after } }
    return later.isEmpty
      ? .lines([.head(DownHead(isFull: false, sequence: after, count: 0))]) : .lines(later.map { .operation($0) })
  }

  // MARK: The server

  func request(
    _ id: String = "c1", _ name: CommandName = .flush, _ args: [String: CommandValue] = [:], seconds: Int64 = 3600
  ) -> CommandRequest {
    CommandRequest(
      namespace: Self.shop, deviceID: "device", id: RecordID(id)!, name: name, args: args,
      expires: serverNow + seconds * 1000)
  }

  func insert(_ request: CommandRequest, _ fields: JSONValue? = nil) {
    change(request.id, .insert, (fields ?? request.fields).bytes)
  }

  func stepServer(by duration: Duration) { step.withLock { $0 += duration } }

  func delete(_ id: String = "c1") { change(RecordID(id)!, .delete, []) }

  func change(_ id: RecordID, _ kind: RecordOperation.Kind, _ fields: [UInt8]) {
    operations.withLock { operations in
      let sequence = Int64(operations.count + 2)
      operations.append(
        DownOperation(
          sequence: sequence, op: "o\(sequence)", table: .command, id: id, kind: kind, fields: fields,
          time: serverNow + sequence))
    }
  }

  /// The answers of the device in a packet.
  static func states(in request: TransferRequest) -> [(id: String, state: CommandState, result: JSONValue?)] {
    guard let headers = request.packetHeaders, headers.kind == .records,
      let reader = try? PacketReader(cipher: .aes128GCM, key: DeliveryRig.key),
      let lines = try? reader.read(headers, body: request.body, mac: nil).metas.merged()
    else { return [] }
    return lines.compactMap { line in
      guard let operation = try? JSONValue(parsing: line), let id = operation["id"]?.string,
        let answer = operation["fields"].flatMap({ CommandAnswer(fields: $0) })
      else { return nil }
      return (id, answer.state, answer.result)
    }
  }

  // MARK: The device

  static func answer(_ engine: Engine, _ id: String = "c1") async throws -> CommandAnswer? {
    let records = try await engine.parts.store.commands(of: shop, after: nil).records
    return try records.first { $0.id.text == id }.flatMap { try CommandAnswer(fields: JSONValue(parsing: $0.fields)) }
  }

  /// Moves the time until the command's record has `state`.
  func reaches(_ state: CommandState?, _ engine: Engine, _ id: String = "c1") async throws -> Bool {
    try await rig.runs { try await Self.answer(engine, id)?.state == state }
  }
}

/// Tools that note what they are asked for.
final class ScriptedTools: CommandTools {
  private let state = Mutex<(asked: [String], waits: Bool, waiters: [CheckedContinuation<Void, Never>])>(
    ([], false, []))
  private let passing = Mutex<@Sendable (CommandDeath.Moment) -> Bool>({ _ in false })

  /// - Parameter passing: says whether the daemon is dead, and asks for nothing any more.
  func passes(_ passing: @escaping @Sendable (CommandDeath.Moment) -> Bool) { self.passing.withLock { $0 = passing } }

  /// Each command that began, in its order.
  var asked: [String] { state.withLock { $0.asked } }
  /// Commands do not end from now on.
  func hold() { state.withLock { $0.waits = true } }
  /// They end.
  func go() {
    let waiters = state.withLock { state in
      state.waits = false
      defer { state.waiters = [] }
      return state.waiters
    }
    for waiter in waiters { waiter.resume() }
  }

  private func end(_ what: String) async -> CommandEnd {
    let passes = passing.withLock { $0 }
    if passes(.asks) { return .failed("the daemon is dead") }
    defer { _ = passes(.ran) }
    await withCheckedContinuation { continuation in
      let waits = state.withLock { state in
        state.asked.append(what)
        if state.waits { state.waiters.append(continuation) }
        return state.waits
      }
      _ = passes(.runs)
      if !waits { continuation.resume() }
    }
    return .done(.string("did \(what)"))
  }

  func doctor(for command: CommandOrigin) async -> CommandEnd { await end("doctor \(command.id)") }
  func collect(_ path: String, for command: CommandOrigin) async -> CommandEnd { await end("collect \(path)") }
  func run(_ unit: String, for command: CommandOrigin) async -> CommandEnd { await end("run \(unit) \(command.id)") }
}

extension Result where Failure == any Error {
  fileprivate init(_ body: () async throws -> Success) async {
    do { self = .success(try await body()) } catch { self = .failure(error) }
  }
}
