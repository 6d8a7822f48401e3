import PrismBase
import PrismConfig
import PrismControl
import PrismProtocol
import PrismStore
import PrismTestSupport
import Synchronization
import Testing

@testable import PrismEngine

@Suite("Delivery")
struct DeliveryTests {
  static let shop = NamespaceName("shop")!

  static func ledger(_ engine: Engine, _ kind: RowKind = .meta) async throws -> Ledger {
    try await engine.parts.store.status()[shop]?[kind]?.ledger ?? Ledger()
  }

  @Test("packets go to the collector in order, each naming the one before it, with the headers of the protocol")
  func chain() async throws {
    let rig = DeliveryRig()
    let engine = try await rig.engine(DeliveryRig.snapshot { $0.maxItem = 2 })
    await rig.report(1...5, to: engine)
    #expect(try await rig.runs { try await Self.ledger(engine)[.delivered] == 5 })
    let requests = rig.transport.requests
    #expect(try requests.map(DeliveryRig.numbers) == [[1, 2], [3, 4], [5]])
    #expect(
      requests.map { $0.header("Prism-Depends-On") } == [nil] + requests.dropLast().map { $0.header("Prism-Packet-Id") }
    )
    let first = try #require(requests.first)
    #expect(first.url == "https://collector.test/prism/meta")
    #expect(first.header("Content-Type") == "application/vnd.prism.meta" && first.header("Prism-Version") == "2")
    #expect(first.header("Prism-Item-Count") == "2" && first.header("Prism-Key-Id") == "main")
    #expect(first.header("Prism-Ledger")?.contains(";stored=5;delivered=0;") == true)
    await engine.stop()
  }

  @Test("a packet whose answer was lost is sent again under its id with the same plaintext, after a restart too")
  func frozen() async throws {
    let lost: ScriptedTransport.Script = { _ in ScriptedTransport.failure(.reset, mayHaveLeft: true) }
    let rig = DeliveryRig(ScriptedTransport(lost))
    do {
      let engine = try await rig.engine()
      await rig.report(1...3, to: engine)
      #expect(await rig.runs { rig.transport.requests.count >= 2 })
      await engine.stop()
    }
    rig.transport.set(ScriptedTransport.accept)
    let engine = try await rig.engine()
    await rig.report(4...4, to: engine)
    #expect(try await rig.runs { try await Self.ledger(engine)[.delivered] == 4 })
    let requests = rig.transport.requests
    let firstID = requests.first?.header("Prism-Packet-Id")
    let same = requests.filter { $0.header("Prism-Packet-Id") == firstID }
    #expect(same.count == requests.count - 1)
    #expect(try same.map(DeliveryRig.numbers).allSatisfy { $0 == [1, 2, 3] })
    #expect(Set(same.map(\.body)).count == same.count, "a new nonce each time")
    await engine.stop()
  }

  @Test(
    "one packet of a kind is on its way at a time, also where pauses end at once and reports keep coming",
    .timeLimit(.minutes(10)))
  func oneAtATime() async throws {
    let now = Mutex(0)
    let most = Mutex(0)
    let rig = DeliveryRig(
      ScriptedTransport { _ in
        let count = now.withLock {
          $0 += 1
          return $0
        }
        most.withLock { $0 = max($0, count) }
        for _ in 0..<10 { await Task.yield() }
        now.withLock { $0 -= 1 }
        return ScriptedTransport.failure(.connect, mayHaveLeft: false)
      })
    let engine = try await rig.engine()
    let writer = Task {
      for number in 0..<2000 where !Task.isCancelled {
        await rig.report(number...number, of: "pay", isRealtime: true, to: engine)
      }
    }
    while rig.transport.requests.count < 30 {
      rig.time.advance(by: .seconds(5))  // the longest pause is over within the commit that follows a failure
      try await Task.sleep(for: .milliseconds(1))
    }
    writer.cancel()
    await writer.value
    #expect(most.withLock { $0 } == 1)
    #expect(try await Self.ledger(engine).isBalanced)
    await engine.stop()
  }

  @Test("a reload that changes nothing tries at once what a fault of configuration holds")
  func reloadOfNothing() async throws {
    let rig = DeliveryRig(ScriptedTransport { ScriptedTransport.answer(403, to: $0) })
    let engine = try await rig.engine(random: Randomness { .max / 3 })
    await rig.report(1...1, to: engine)
    #expect(await rig.runs { await engine.pipelines[Self.shop]?.status.isHeld == true })
    rig.transport.set(ScriptedTransport.accept)
    let before = rig.time.uptime
    await engine.reloaded()
    #expect(try await rig.runs(step: .zero) { try await Self.ledger(engine)[.delivered] == 1 })
    #expect(rig.time.uptime == before)
    await engine.stop()
  }

  @Test("a packet that always fails holds up its own kind only, though the circuit is open")
  func poison() async throws {
    let rig = DeliveryRig(
      ScriptedTransport { request in
        request.url.hasSuffix("/meta")
          ? ScriptedTransport.answer(500, to: request) : await ScriptedTransport.accept(request)
      })
    let engine = try await rig.engine()
    await rig.report(1...1, to: engine)
    #expect(await rig.runs { await engine.pipelines[Self.shop]?.status.circuitIsOpen == true })
    await rig.report(2...2, of: "scan", payload: [1, 2, 3], to: engine)
    #expect(try await rig.runs { try await Self.ledger(engine, .payload)[.delivered] == 1 })
    await engine.stop()
  }

  @Test("the one report that the collector can't take is found in at most 15 requests, and the other 99 are delivered")
  func halving() async throws {
    let rig = DeliveryRig(
      ScriptedTransport { request in
        let numbers = (try? DeliveryRig.numbers(request)) ?? []
        return numbers.contains(42)
          ? ScriptedTransport.refusal(422, body: #"{"message":"no 42"}"#, to: request)
          : await ScriptedTransport.accept(request)
      })
    let engine = try await rig.engine()
    await rig.report(1...100, to: engine)
    let isDone = try await rig.runs {
      let ledger = try await Self.ledger(engine)
      return ledger[.dead] == 1 && ledger[.delivered] == 99
    }
    #expect(isDone)
    #expect(rig.transport.requests.count <= 15)
    let letters = try await engine.parts.store.deadLetters(of: nil, after: 0, limit: 10)
    #expect(letters.map(\.cause.message) == ["no 42"])
    #expect(try await Self.ledger(engine).isBalanced)
    await engine.stop()
  }

  @Test("a 2xx without the packet's receipt is no acceptance, unless the namespace says so")
  func receipts() async throws {
    let rig = DeliveryRig(ScriptedTransport { ScriptedTransport.answer(200, to: $0) })
    let engine = try await rig.engine()
    await rig.report(1...1, to: engine)
    #expect(await rig.runs { rig.transport.requests.count >= 3 })
    #expect(try await Self.ledger(engine)[.delivered] == 0)
    await engine.publish(DeliveryRig.snapshot { $0.receipt = .optional })
    #expect(try await rig.runs { try await Self.ledger(engine)[.delivered] == 1 })
    await engine.stop()
  }

  @Test("a fault of configuration holds the namespace and drops nothing; a reload tries at once")
  func held() async throws {
    let rig = DeliveryRig(ScriptedTransport { ScriptedTransport.answer(401, to: $0) })
    let engine = try await rig.engine()
    await rig.report(1...1, to: engine)
    #expect(await rig.runs { await engine.pipelines[Self.shop]?.status.isHeld == true })
    rig.transport.set(ScriptedTransport.accept)
    await engine.publish(DeliveryRig.snapshot { $0.uploadInterval = .seconds(7) })
    #expect(try await rig.runs { try await Self.ledger(engine)[.delivered] == 1 })
    await engine.stop()
  }

  @Test(
    "a refusal that the collector did not prove holds every report, and says so; they leave once it is mended",
    arguments: [400, 410, 413, 415, 422])
  func unprovenRefusal(status: Int) async throws {
    let rig = DeliveryRig(
      ScriptedTransport { ScriptedTransport.answer($0.packetHeaders == nil ? 503 : status, body: "<html>", to: $0) })
    let engine = try await rig.engine()
    await rig.report(1...5, to: engine)
    #expect(await rig.runs { await engine.pipelines[Self.shop]?.status.isHeld == true })
    let failure = await engine.pipelines[Self.shop]?.status.presentFailure
    #expect(failure?.status == status && failure?.cause.contains("without the collector's proof") == true)
    let findings = await Doctor(engine: engine, process: ProcessFigures()).findings()
    let finding = try #require(findings.first { $0.check == "delivery shop" })
    #expect(finding.result == .fault && finding.text.contains("without the collector's proof"))
    #expect(finding.advice?.contains("trustRefusals") == true, "\(finding)")
    #expect(try await Self.ledger(engine)[.dead] == 0)
    rig.transport.set(ScriptedTransport.accept)
    #expect(try await rig.runs { try await Self.ledger(engine)[.delivered] == 5 })
    #expect(try await Self.ledger(engine)[.dead] == 0)
    await engine.stop()
  }

  @Test("a namespace that trusts refusals takes one without a proof", arguments: [400, 413, 415, 422])
  func trustedRefusal(status: Int) async throws {
    let rig = DeliveryRig(ScriptedTransport { ScriptedTransport.answer(status, to: $0) })
    let engine = try await rig.engine(DeliveryRig.snapshot { $0.trustsRefusals = true })
    await rig.report(1...3, to: engine)
    #expect(try await rig.runs { try await Self.ledger(engine)[.dead] == 3 })
    await engine.stop()
  }

  @Test(
    "a refusal on a kept connection is asked for once more on a new one before a report is given up",
    arguments: [400, 413, 422])
  func strayRefusal(status: Int) async throws {
    let rig = DeliveryRig(
      ScriptedTransport { request in
        guard !request.needsNewConnection else { return await ScriptedTransport.accept(request) }
        var answer = ScriptedTransport.answer(status, body: "<html>", to: request)
        answer.origin = .keptConnection
        return answer
      })
    let engine = try await rig.engine()
    let before = rig.time.uptime
    await rig.report(1...3, to: engine)
    _ = await engine.flush(nil)
    #expect(try await rig.runs(step: .zero) { try await Self.ledger(engine)[.delivered] == 3 })
    #expect(rig.time.uptime == before && rig.transport.requests.count == 2)
    #expect(Set(rig.transport.requests.map { $0.header("Prism-Packet-Id") }).count == 1)
    #expect(await engine.pipelines[Self.shop]?.status.counters[.meta].packets[.unproven] == 1)
    await engine.stop()
  }

  @Test("another key under the same id holds the namespace, and doctor says what to do; a reload tries at once")
  func foreignKey() async throws {
    let rig = DeliveryRig(
      ScriptedTransport {
        ScriptedTransport.answer(400, body: #"{"code":"decryptionFailed","message":"no packet"}"#, to: $0)
      })
    let engine = try await rig.engine(DeliveryRig.snapshot { $0.maxItem = 1 })
    await rig.report(1...20, to: engine)
    #expect(await rig.runs { await engine.pipelines[Self.shop]?.status.isHeld == true })
    #expect(try await Self.ledger(engine)[.dead] == 0)
    let doctor = Doctor(engine: engine, process: ProcessFigures())
    let finding = try #require(await doctor.findings().first { $0.check == "delivery shop" })
    #expect(finding.result == .fault && finding.text == "status 400, a fault of configuration: no packet")
    #expect(finding.advice?.contains("key `main` here and the collector's of that id differ") == true)
    rig.transport.set(ScriptedTransport.accept)
    let before = rig.time.uptime
    await engine.reloaded()
    #expect(try await rig.runs(step: .zero) { try await Self.ledger(engine)[.delivered] == 20 })
    #expect(rig.time.uptime == before)
    await engine.stop()
  }

  @Test("a token that was rotated is used from the next packet on, and a namespace that was held for the old one tries")
  func token() async throws {
    let rig = DeliveryRig(
      ScriptedTransport {
        $0.header("Authorization") == "Bearer second"
          ? await ScriptedTransport.accept($0) : ScriptedTransport.answer(401, to: $0)
      })
    let token = { (text: String) in
      DeliveryRig.snapshot { $0.token = HeldFile(path: "/token", content: Secret(Array(text.utf8))) }
    }
    let engine = try await rig.engine(token("first"))
    await rig.report(1...1, to: engine)
    #expect(await rig.runs { await engine.pipelines[Self.shop]?.status.isHeld == true })
    await engine.publish(token("second"))
    #expect(try await rig.runs { try await Self.ledger(engine)[.delivered] == 1 })
    let tokens = rig.transport.requests.map { $0.header("Authorization") }
    #expect(tokens.last == "Bearer second" && tokens.dropLast().allSatisfy { $0 == "Bearer first" })
    await engine.stop()
  }

  @Test("on a metered network types with onlyWifi stay, and leave when it is unmetered again")
  func onlyWifi() async throws {
    let rig = DeliveryRig(network: .metered)
    let engine = try await rig.engine()
    await rig.report(1...2, of: "log", to: engine)
    await rig.report(3...4, to: engine)
    #expect(try await rig.runs { try await Self.ledger(engine)[.delivered] == 2 })
    #expect(try rig.transport.requests.flatMap(DeliveryRig.numbers) == [3, 4])
    rig.network.set(.unmetered)
    #expect(try await rig.runs { try await Self.ledger(engine)[.delivered] == 4 })
    await engine.stop()
  }

  @Test("a type that a reload makes onlyWifi stays on a metered network, also in a packet that was built before")
  func onlyWifiSince() async throws {
    let gate = AnswerGate()
    let rig = DeliveryRig(gate.transport, network: .metered)
    let engine = try await rig.engine(DeliveryRig.snapshot { ($0.maxItem, $0.meteredInterval) = (2, .zero) })
    await rig.report(1...4, to: engine)
    let areBuilt = try await rig.runs {
      let raw = await engine.pipelines[Self.shop]?.status.counters[.meta].bytesRaw ?? 0
      return try rig.transport.requests.flatMap(DeliveryRig.numbers) == [1, 2] && raw > 3 * 125  // of about 125 each
    }
    #expect(areBuilt)
    let reloaded = DeliveryRig.snapshot {
      ($0.maxItem, $0.meteredInterval) = (2, .zero)
      $0.monitorList[0].onlyWifi = true
    }
    await engine.publish(reloaded)
    gate.open()
    #expect(try await rig.runs { try await Self.ledger(engine)[.delivered] == 2 })
    rig.time.advance(by: .seconds(600))
    for _ in 0..<1000 { await Task.yield() }
    #expect(try rig.transport.requests.flatMap(DeliveryRig.numbers) == [1, 2])
    rig.network.set(.unmetered)
    #expect(try await rig.runs { try await Self.ledger(engine)[.delivered] == 4 })
    await engine.stop()
  }

  @Test("the metered window ends at its limit, but for one packet at most, and a new one begins after 24 h")
  func flow() async throws {
    let rig = DeliveryRig(network: .metered)
    let engine = try await rig.engine(
      DeliveryRig.snapshot {
        ($0.maxFlowBytes, $0.maxItem, $0.meteredInterval) = (5000, 1, .zero)
      })
    await rig.report(1...40, to: engine)
    #expect(await rig.runs { await engine.pipelines[Self.shop]?.explain(.meta, ReportType("order")!)?.gate == .flow })
    let sent = rig.transport.requests.reduce(0) { $0 + $1.body.count + 600 }
    #expect(sent >= 5000 - 2500 && sent <= 5000 + 2500)
    let before = rig.transport.requests.count
    rig.time.advance(by: .seconds(86_400))
    #expect(await rig.runs { rig.transport.requests.count > before })
    await engine.stop()
  }

  @Test("reports that are stored while a packet is on its way are sent too")
  func duringDrain() async throws {
    let gate = AnswerGate()
    let rig = DeliveryRig(gate.transport)
    let engine = try await rig.engine()
    await rig.report(1...1, to: engine)
    #expect(await rig.runs { rig.transport.requests.count == 1 })
    await rig.report(2...2, to: engine)
    rig.time.advance(by: .seconds(20))
    for _ in 0..<1000 { await Task.yield() }
    gate.open()
    #expect(try await rig.runs { try await Self.ledger(engine)[.delivered] == 2 })
    await engine.stop()
  }

  @Test("a namespace that is not configured any more keeps its rows, and sends them when it comes back")
  func retired() async throws {
    let rig = DeliveryRig()
    let engine = try await rig.engine()
    var without = DeliveryRig.snapshot()
    without.namespaces[Self.shop] = nil
    await engine.publish(without)
    await rig.report(1...1, to: engine)
    rig.time.advance(by: .seconds(60))
    #expect(await engine.pipelines[Self.shop]?.status.isRetired == true)
    #expect(rig.transport.requests.isEmpty)
    await engine.publish(DeliveryRig.snapshot())
    #expect(try await rig.runs { try await Self.ledger(engine)[.delivered] == 1 })
    await engine.stop()
  }

  @Test("a stop gives a hanging POST 5 s and leaves the packet for the next start")
  func stop() async throws {
    let time = Mutex<ManualTime?>(nil)
    let rig = DeliveryRig(
      ScriptedTransport { _ in
        let time = time.withLock { $0 }
        do { try await time?.sleep(for: .seconds(1_000_000)) } catch {
          return ScriptedTransport.failure(.cancelled, mayHaveLeft: true)
        }
        return ScriptedTransport.failure(.timeout, mayHaveLeft: true)
      })
    time.withLock { $0 = rig.time }
    try await stopWhilePosting(rig)
    rig.transport.set(ScriptedTransport.accept)
    let next = try await rig.engine()
    #expect(try await rig.runs { try await Self.ledger(next)[.delivered] == 1 })
    #expect(Set(rig.transport.requests.map { $0.header("Prism-Packet-Id") }).count == 1)
    await next.stop()
  }

  @Test("a POST that this side gave up without a stop is tried again after a pause")
  func strayCancel() async throws {
    let rig = DeliveryRig(ScriptedTransport { _ in ScriptedTransport.failure(.cancelled, mayHaveLeft: true) })
    let engine = try await rig.engine()
    await rig.report(1...1, to: engine)
    // Short steps: one more of them, which a slow machine takes before the request is seen, does not end the pause.
    #expect(await rig.runs(step: .milliseconds(2)) { rig.transport.requests.count == 1 })
    for _ in 0..<2000 { await Task.yield() }
    #expect(rig.transport.requests.count == 1, "no time went by")
    rig.transport.set(ScriptedTransport.accept)
    #expect(try await rig.runs { try await Self.ledger(engine)[.delivered] == 1 })
    #expect(Set(rig.transport.requests.map { $0.header("Prism-Packet-Id") }).count == 1)
    await engine.stop()
  }

  private func stopWhilePosting(_ rig: DeliveryRig) async throws {
    let engine = try await rig.engine()
    await rig.report(1...1, to: engine)
    #expect(await rig.runs { rig.transport.requests.count == 1 })
    let isStopped = Mutex(false)
    let stopping = Task {
      await engine.stop()
      isStopped.withLock { $0 = true }
    }
    #expect(await rig.runs { isStopped.withLock { $0 } })
    await stopping.value
  }
}
