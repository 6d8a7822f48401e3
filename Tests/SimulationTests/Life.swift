import Foundation
import PrismAdmission
import PrismBase
import PrismConfig
import PrismPacket
import PrismProtocol
import PrismSQLite
import PrismTestSupport
import Synchronization

@testable import PrismEngine
@testable import PrismStore

/// Days of a daemon in seconds: the real engine over the real store, in a world of clients, networks, collectors,
/// clocks and operators that one seed drives. Every promise is checked whenever anything happened.
///
/// `@unchecked Sendable`: it lives on its stage's one thread.
final class Life: @unchecked Sendable {
  typealias Line = SimulatedCollector.Line

  let stage: Stage
  var random: SeededRandom
  var trace = Trace()
  var collector = SimulatedCollector()
  var rules = UploadRules()
  var oracle = Oracle()
  var settings = LifeSettings()
  var moods: [NamespaceName: Mood] = [:]
  var networkKind = NetworkStatus.Kind.unmetered
  /// The first promise that was broken, in a place that can't throw.
  var broken: Broken?
  private(set) var incarnation: Incarnation!
  /// By namespace and user.
  var reporters: [[Reporter]] = []
  private var readers: [String: PacketReader] = [:]
  private var folders = 0
  private let root: String
  private let engineRandom: Randomness

  init(_ stage: Stage, seed: UInt64, root: String) throws {
    (self.stage, self.root) = (stage, root)
    random = SeededRandom(seed: seed)
    let draws = Draws(seed: random.next())
    engineRandom = Randomness { draws.next() }
    let folder = newFolder()
    try name(folder)
    try start(in: folder, uptime: .seconds(1000), unixMilliseconds: 1_700_000_000_000)
  }

  private final class Draws: Sendable {
    private let random: Mutex<SeededRandom>
    init(seed: UInt64) { random = Mutex(SeededRandom(seed: seed)) }
    func next() -> UInt64 { random.withLock { $0.next() } }
  }

  var time: ManualTime { incarnation.time }
  var engine: Engine { incarnation.engine }

  // MARK: One daemon after another

  private func newFolder() -> String {
    folders += 1
    let path = "\(root)/\(folders)"
    mkdir(path, 0o700)
    return path
  }

  /// A database's epoch is drawn by SQLite; here it is always the same, so that packets are.
  private func name(_ folder: String) throws {
    try stage.outside {
      var options = StoreOptions(folder: folder)
      (options.ballastBytes, options.log) = (0, Logger(write: { _ in }))
      await (try ReportStore.open(options)).close()
      let connection = try SQLiteConnection(.init(path: folder + "/prism.db"))
      try Epoch.write("0123456789abcdef0123", connection)
    }
  }

  func start(in folder: String, uptime: Duration, unixMilliseconds: Int64) throws {
    let transport = SimulatedTransport(
      begin: { [unowned self] in begins($0) }, arrive: { [unowned self] in arrives($0, $1, waited: $2) },
      end: { [unowned self] in ends($0, $1) })
    incarnation = try Incarnation(
      stage, folder: folder, uptime: uptime, unixMilliseconds: unixMilliseconds, network: FixedNetwork(networkKind),
      settings: settings, random: engineRandom, transport: transport)
    try takeUpFlow()
    try incarnation.start()
    reporters = LifeSettings.names.map { _ in
      LifeReport.users.map { Reporter(AdmissionRules(engine.hub.current), userID: $0) }
    }
  }

  /// Takes over the namespaces' use of metered networks from the store, before the engine works on it.
  private func takeUpFlow() throws {
    let store = incarnation.store
    let notes = stage.perform { () -> [NamespaceName: [UInt8]] in
      var notes: [NamespaceName: [UInt8]] = [:]
      for name in LifeSettings.names { notes[name] = try? await store.note(name, "flow") }
      return notes
    }
    let now = Instant(time)
    for name in LifeSettings.names {
      let window = notes[name].map { FlowWindow(note: $0, now: now) } ?? FlowWindow(now: now)
      guard let window else { throw Broken(description: "\(name): a damaged note") }
      try rules.starts(name, usedBytes: window.usedBytes, windowEndsIn: window.remaining(now), now: now.uptime)
    }
  }

  /// A clean stop, and a start after `pause`.
  func restart(after pause: Duration) throws {
    try incarnation.stop { try step(until: time.uptime + .seconds(10)) }
    rules.wasStopped()
    try succeed(in: incarnation.folder, after: pause)
  }

  /// kill -9, and a start after `pause` on what had been written.
  func kill(after pause: Duration) throws {
    let folder = newFolder()
    trace.isMuted = true
    try incarnation.abandon(to: folder)
    trace.isMuted = false
    rules.wasKilled()
    try succeed(in: folder, after: pause)
    oracle.resolve(try ledgers())
  }

  private func succeed(in folder: String, after pause: Duration) throws {
    let (uptime, milliseconds) = (time.uptime + pause, time.unixMilliseconds + pause.wholeMilliseconds)
    incarnation = nil
    try start(in: folder, uptime: uptime, unixMilliseconds: milliseconds)
  }

  // MARK: The time

  /// Of one moment: a busy one takes some thousands.
  private static let jobsMax = 300_000

  /// To the next moment that anything waits for, `limit` at the latest.
  func step(until limit: Duration) throws {
    let next = min(time.nextDeadline ?? limit, limit)
    if next > time.uptime { time.advance(by: next - time.uptime) }
    let jobsBefore = stage.jobsRun
    stage.settle(jobsMax: Self.jobsMax)
    guard stage.jobsRun - jobsBefore < Self.jobsMax else {
      throw Broken(description: "over \(Self.jobsMax) jobs in one moment: the daemon works without an end")
    }
    try check()
  }

  func live(until end: Duration) throws {
    while time.uptime < end { try step(until: end) }
  }

  /// Events come irregularly, half a minute apart, with a night's silence now and then.
  func trouble(for span: Duration) throws {
    let end = time.uptime + span
    while time.uptime < end {
      let pause = random.oneIn(400) ? 3_600_000 : Int.random(in: 1...60_000, using: &random)
      try live(until: min(end, time.uptime + .milliseconds(pause)))
      try event()
    }
  }

  /// Lets go of everything.
  func end() {
    incarnation.transport.die()
    let engine = self.engine
    let stopping = stage.begin { await engine.stop() }
    stage.settle()
    while stopping.value == nil {
      time.advance(by: .seconds(1))
      stage.settle()
    }
    incarnation = nil
  }

  func note(_ what: String) {
    trace.note("\(time.uptime.wholeMilliseconds) \(time.unixMilliseconds) \(what)")
  }

  // MARK: The way to the collector; on the stage's thread

  private func begins(_ request: TransferRequest) -> Deed? {
    guard broken == nil else { return nil }
    do {
      let packet = try open(request)
      try collector.saw(packet)
      try rules.begins(
        packet, estimatedBytes: OutgoingPacket.estimatedBytes(bodyBytes: request.body.count), network: networkKind,
        settings: settings, now: time.uptime)
      let sentTime = request.header("Prism-Sent-Time").flatMap { Int64($0) } ?? 0
      for report in packet.reports {
        try oracle.expect(report, packet.line)
        try oracle.expectAge(of: report, sentTime: sentTime, now: time.uptime)
      }
      let mood = moods[packet.line.namespace] ?? .healthy
      var deed = Deed(
        mood, isKnown: collector.isKnown(packet.id), onNewConnection: request.needsNewConnection,
        now: time.unixMilliseconds, using: &random)
      if deed.isRefusal, case .status(let status, _, let body) = deed.answer {
        collector.refused(packet)
        deed.answer = .status(status, receipt(request, body, refusal: status), body: body)
      }
      // A report that a proxy does not let through waits, and others go on.
      if case .status(413, _, _) = deed.answer, !deed.isRefusal, packet.reports.count == 1 {
        collector.outOfOrder.insert(packet.reports[0].number)
      }
      note("\(packet.line) \(packet.id) \(packet.reports.map(\.number)) \(packet.digest) \(mood)")
      return deed
    } catch {
      broken = broken ?? (error as? Broken) ?? Broken(description: "\(error)")
      return nil
    }
  }

  private static let heldTime: Duration = .seconds(30)

  private func arrives(_ request: TransferRequest, _ deed: Deed, waited: Duration) -> SimulatedTransport.Said? {
    do {
      let packet = try open(request)
      let window = deed.window.map { ["prism-window": String($0)] } ?? [:]
      let answer = { (body: String) -> SimulatedTransport.Said in
        (200, self.receipt(request, body).merging(window) { $1 }, body)
      }
      let missing = ["prism-missing": packet.dependsOn?.description ?? ""]
      switch try collector.take(packet, rowsMax: deed.rowsMax) {
      case .accepted: return answer(#"{"duplicate":false}"#)
      case .duplicate: return answer(#"{"duplicate":true}"#)
      case .held where !deed.holdsNone && waited < Self.heldTime: return nil
      case .held: return (425, missing, #"{"message":"send the one before it"}"#)
      case .stranded: return (409, missing, #"{"message":"the one before it was refused"}"#)
      case .refused(let status):
        let name = deed.namesPacket ? #","packetId":"\#(packet.id)""# : ""
        let body = #"{"message":"can't take it"\#(name)}"#
        return (status, self.receipt(request, body, refusal: status), body)
      }
    } catch {
      broken = broken ?? (error as? Broken) ?? Broken(description: "\(error)")
      return (500, [:], "")
    }
  }

  private func ends(_ request: TransferRequest, _ answer: PostAnswer) {
    guard let line = Self.line(request) else { return }
    let packet = request.header("Prism-Packet-Id") ?? ""
    rules.ends(line, packet, answer, now: time.uptime)
    let outcome =
      switch answer.outcome {
      case .response(let status, _, _): String(status)
      case .failure(let failure, _): failure.rawValue
      }
    note("\(line) \(packet) \(outcome) \(answer.bytesSent)")
  }

  private static func line(_ request: TransferRequest) -> Line? {
    let kind: RowKind = request.url.hasSuffix("/payload") ? .payload : .meta
    return request.header("Prism-Namespace").flatMap { NamespaceName($0) }.map { Line(namespace: $0, kind: kind) }
  }

  private func open(_ request: TransferRequest) throws -> SimulatedCollector.Packet {
    guard let headers = request.packetHeaders, headers.deviceID == LifeSettings.deviceID,
      let key = LifeSettings.keys.first(where: { $0.id == headers.format.keyID })
    else { throw Broken(description: "a request without the headers of the protocol") }
    let line = Line(namespace: headers.namespace, kind: headers.kind)
    let cipher = headers.format.cipher
    let reader = try readers[cipher.rawValue] ?? PacketReader(cipher: cipher, key: key.secret)
    readers[cipher.rawValue] = reader
    let opened = try reader.read(headers, body: request.body, mac: request.header("Prism-Mac"))
    let metas = try opened.metas.merged()
    let reports = try metas.enumerated().map { index, meta in
      try ArrivedReport(
        meta: meta, payload: line.kind.hasPayload ? opened.payloads[index] : nil, namespace: line.namespace)
    }
    var digest: UInt64 = 0xCBF2_9CE4_8422_2325
    for byte in metas.map(ArrivedReport.withoutClock).joined(separator: [0x0A]) {
      digest = (digest ^ UInt64(byte)) &* 0x0000_0100_0000_01B3
    }
    return SimulatedCollector.Packet(
      id: headers.packetID, line: line, dependsOn: headers.dependsOn,
      pending: headers.pendingCount, reports: reports, digest: digest)
  }

  /// The proof of an honest answer. - Parameter status: of a refusal; nil: the packet is at rest.
  func receipt(_ request: TransferRequest, _ body: String, refusal status: Int? = nil) -> [String: String] {
    let key = LifeSettings.keys.first { $0.id == request.header("Prism-Key-Id") }
    return ScriptedTransport.receipt(for: request, body: body, refusal: status, key: key?.secret ?? Secret([]))
  }
}
