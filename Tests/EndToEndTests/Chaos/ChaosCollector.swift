import Dispatch
import PrismBase
import PrismHTTP
import PrismProtocol
import PrismTestSupport
import Synchronization

@testable import PrismCollector

/// A collector that answers one POST in three wrongly. It passes the others to a real one, which knows what was
/// applied.
///
/// The faults follow from the seed and from the number of POSTs that the namespace and kind had before, so a seed
/// replays them in any order of threads. One rule binds it: a packet that it took it never rejects later. With such a
/// collector no sender could deliver exactly once.
final class ChaosCollector: Sendable {
  private struct State {
    var random: [String: SeededRandom] = [:]
    var isHonest = false
    /// Plaintexts by packet.
    var seen: [String: [[UInt8]]] = [:]
    var applied: Set<String> = []
    /// Packets that were begun to be taken, whether they are applied by now or not.
    var begun: Set<String> = []
    /// Packets that came before, in any state.
    var posted: Set<String> = []
    var rejected: [String: Misbehaviour] = [:]
    /// How often each of these came again.
    var returned: [String: Int] = [:]
    var drawn: [String: Int] = [:]
    var posts = 0
    var violations: [String] = []
  }

  /// A packet that comes as often meets a proxy's limit no more.
  private static let limitedPostsMax = 20

  private let collector: Collector
  private let openers: PacketOpeners
  private let choice: [Misbehaviour]
  private let seed: UInt64
  private let isBad: @Sendable (Int) -> Bool
  /// Of its receipts, where the misbehaviour makes them; nil: that of `DeliveryRig`.
  private let key: Secret?
  private let state = Mutex(State())

  /// - Parameter choice: what may go wrong; empty: nothing.
  /// - Parameter isBad: reports, by their `n`, for which a packet is answered 422.
  init(
    folder: String, keys: [String: Secret], choice: [Misbehaviour], seed: UInt64,
    isBad: @escaping @Sendable (Int) -> Bool = { _ in false }
  ) throws {
    collector = try Collector(CollectorOptions(state: folder, keys: keys), log: Logger(write: { _ in }))
    openers = PacketOpeners(keys: SenderKeys(keys), memoryBytesMax: 64 * 1_048_576)
    (self.choice, self.seed, self.isBad, key) = (choice, seed, isBad, keys["main"])
  }

  var posts: Int { state.withLock { $0.posts } }
  /// How often each misbehaviour came.
  var drawn: [String: Int] { state.withLock { $0.drawn } }
  /// The acts that a sender must never do: a packet id with another content, a predecessor that was never accepted.
  var violations: [String] { state.withLock { $0.violations } }

  func becomeHonest() { state.withLock { $0.isHonest = true } }

  // MARK: Over plain sockets

  /// Serves one connection to its end. Blocks.
  func serve(_ wire: Wire) {
    var isKept = false
    while let head = wire.readHead() {
      var wrong = draw(head)
      if let stray = wrong, stray.isStray {
        if isKept {
          noteDoubt(wire, head)
          _ = stray.act(scene(wire, head))
        }
        wrong = nil
      }
      isKept = true
      if let wrong, wrong.moment != .afterRequest {
        noteDoubt(wire, head)
        if wrong.moment == .withinBody { _ = wire.read(head.bodyBytes / 2) }
        _ = wrong.act(scene(wire, head))
        return
      }
      guard let body = wire.read(head.bodyBytes) else { return noteDoubt(wire, head) }
      var request = head
      request.body = body
      guard answer(request, wrong, wire) else { return }
    }
  }

  /// The sender can't know whether the packet was taken, though nothing of it was.
  private func noteDoubt(_ wire: Wire, _ head: Wire.Request) {
    guard let packet = scene(wire, head).packet else { return }
    state.withLock { _ = $0.posted.insert(packet) }
  }

  private func scene(_ wire: Wire, _ request: Wire.Request) -> Misbehaviour.Case {
    var scene = Misbehaviour.Case(wire: wire, headers: request.headers)
    if let key { scene.key = key }
    return scene
  }

  private func answer(_ request: Wire.Request, _ wrong: Misbehaviour?, _ wire: Wire) -> Bool {
    let scene = scene(wire, request)
    if let wrong = decide(scene.packet ?? "", wrong) {
      if wrong.isRejection { wait { await self.refuse(request.forCollector) } }
      guard wrong.isApplied else { return wrong.act(scene) }
      let answer = wait { await self.take(request.forCollector) }
      // A packet that has to come again is not taken: a receipt for it would be a lie that no sender can notice.
      return answer.status == 200 ? wrong.act(scene) : send(answer, wire)
    }
    return send(wait { await self.take(request.forCollector) }, wire)
  }

  private func send(_ answer: HTTPResponse, _ wire: Wire) -> Bool {
    let headers = answer.headers.map { "\($0.name): \($0.value)\r\n" }.joined()
    return wire.send(Misbehaviour.Case.answer(answer.status, headers, String(decoding: answer.body, as: UTF8.self)))
  }

  /// Chooses the fault of a packet. A packet that it began to take is never rejected, and a rejected one is never
  /// taken. Of two POSTs of one packet, as after a kill, the first may be dealt with last.
  private func decide(_ packet: String, _ wrong: Misbehaviour?) -> Misbehaviour? {
    state.withLock { state in
      if let before = state.rejected[packet] {
        state.returned[packet, default: 0] += 1
        // A break that only the sender noticed leaves a packet in doubt, too: it is never halved, until the limit is raised.
        guard before.isLimit, state.returned[packet, default: 0] > Self.limitedPostsMax else { return before }
        state.rejected[packet] = nil
        return nil
      }
      let isNew = state.posted.insert(packet).inserted
      guard let wrong, wrong.isRejection else {
        if wrong?.isApplied != false { state.begun.insert(packet) }
        return wrong
      }
      // A proxy's limit stops a packet each time: it does not begin with one that was in doubt before, which is never halved.
      if state.begun.contains(packet) || wrong.isLimit && !isNew { return nil }
      state.rejected[packet] = wrong
      return wrong
    }
  }

  private func draw(_ head: Wire.Request) -> Misbehaviour? {
    let line = "\(head.headers["prism-namespace"] ?? "") \(head.path)"
    return state.withLock { state in
      state.posts += 1
      guard !state.isHonest, !choice.isEmpty else { return nil }
      var random = state.random[line] ?? SeededRandom(seed: seed ^ StableHash.of(Array(line.utf8)))
      defer { state.random[line] = random }
      guard Int.random(in: 0..<3, using: &random) == 0 else { return nil }
      let wrong = choice[Int.random(in: 0..<choice.count, using: &random)]
      state.drawn[wrong.name, default: 0] += 1
      return wrong
    }
  }

  private func wait<R: Sendable>(_ body: @escaping @Sendable () async -> R) -> R {
    let result = Later<R>()
    Task { result.set(await body()) }
    return result.get()
  }

  // MARK: Honestly

  /// The real collector's answer, after the request was checked against the ones before.
  func take(_ request: HTTPRequest) async -> HTTPResponse {
    guard request.method == .post, let packet = request.header("prism-packet-id") else {
      return await collector.answer(request)
    }
    let isBad = await look(at: request, packet)
    if isBad && !state.withLock({ $0.applied.contains(packet) }) {
      await refuse(request)
      let body = #"{"message":"not this one","packetId":"\#(packet)"}"#
      let kind: RowKind = request.path.hasSuffix("payload") ? .payload : .meta
      let proof = (try? Delivery(request, kind: kind, now: 0)).flatMap {
        try? openers.receipt(for: $0, answer: Array(body.utf8), refusal: 422)
      }
      return HTTPResponse(
        status: 422, contentType: "application/json", headers: proof.map { [("Prism-Verdict", $0)] } ?? [], text: body)
    }
    let answer = await collector.answer(request)
    state.withLock { state in
      if answer.status == 200 { state.applied.insert(packet) }
      // Behind others that are on their way, it may have to come again.
      let isPending =
        request.header("prism-ledger")?.contains(";pending=") == true
        && [409, 425].contains(answer.status)
      if answer.status != 200 && !isPending {
        state.violations.append("\(packet): the collector says \(answer.status)")
      }
    }
    return answer
  }

  /// The real collector does not hold others for it.
  private func refuse(_ request: HTTPRequest) async {
    let kind: RowKind = request.path.hasSuffix("payload") ? .payload : .meta
    guard let context = try? Delivery(request, kind: kind, now: 0).context else { return }
    await collector.queue.refuse(PacketKey(context))
  }

  /// - Returns: a report that can't be taken is in it.
  private func look(at request: HTTPRequest, _ packet: String) async -> Bool {
    do {
      let delivery = try Delivery(
        request, kind: request.path.hasSuffix("payload") ? .payload : .meta,
        now: 0)
      let opened = try await openers.open(delivery, body: request.body)
      let metas = opened.rows.map { Array(opened.reports.meta($0)) }
      let plaintext = metas.indices.flatMap { [metas[$0], opened.payload($0) ?? []] }
      state.withLock { state in
        if let before = state.seen[packet], before != plaintext { state.violations.append("\(packet): other contents") }
        state.seen[packet] = plaintext
        if !delivery.hasPendingPredecessor, let predecessor = delivery.dependsOn?.description,
          !state.applied.contains(predecessor)
        {
          state.violations.append("\(packet): names a packet that was never taken")
        }
      }
      return try metas.contains { isBad(try JSONValue(parsing: $0)["n"]?.int ?? 0) }
    } catch {
      state.withLock { $0.violations.append("\(packet): \(error)") }
      return false
    }
  }

  /// The `n` of what was applied, in the order of its arrival, with the packets that came without their predecessor.
  func applied(_ namespace: String, _ kind: RowKind) async throws -> (numbers: [Int], brokenChains: Int) {
    var (numbers, broken, after) = ([Int](), 0, 0)
    while true {
      let page = try JSONValue(
        parsing: await collector.answerReader(
          HTTPRequest(
            method: .get, path: "/reports",
            query: [
              ("namespace", namespace), ("kind", kind.name), ("after", String(after)), ("limit", "1000"),
            ], peer: HTTPPeer(address: "127.0.0.1", isLocal: true)), isOwner: true
        ).body)
      let reports = page["reports"]?.array ?? []
      guard let last = reports.last?["id"]?.int else { return (numbers, broken) }
      numbers += reports.compactMap { $0["meta"]?["n"]?.int }
      broken += reports.count { $0["chainBroken"]?.bool == true }
      after = last
    }
  }
}

/// A value that a task makes for a thread that waits.
private final class Later<R: Sendable>: Sendable {
  private let isThere = DispatchSemaphore(value: 0)
  private let value = Mutex<R?>(nil)

  func set(_ new: R) {
    value.withLock { $0 = new }
    isThere.signal()
  }

  func get() -> R {
    isThere.wait()
    return value.withLock { $0 }!
  }
}

extension Wire.Request {
  var forCollector: HTTPRequest {
    HTTPRequest(
      method: method == "POST" ? .post : .get, path: path, headers: headers.map { ($0.key, $0.value) }, body: body,
      peer: HTTPPeer(address: "127.0.0.1", isLocal: true))
  }
}
