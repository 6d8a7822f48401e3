import PrismConfig
import PrismProtocol
import PrismTestSupport
import Testing

@testable import PrismEngine

/// `device.id` is changed while packets are in flight.
@Suite("The device that a packet is from")
struct SenderTests {
  private static func snapshot(device: String, maxItem: Int = 2) -> Snapshot {
    var snapshot = DeliveryRig.snapshot { $0.maxItem = maxItem }
    snapshot.daemon.deviceId = device
    return snapshot
  }

  private func devices(_ requests: [TransferRequest]) -> [String: Set<String>] {
    let pairs = requests.map { ($0.header("Prism-Packet-Id") ?? "", Set([$0.header("Prism-Device-Id") ?? ""])) }
    return Dictionary(pairs) { $0.union($1) }
  }

  /// An engine that is gone afterwards, so that another may take its store.
  private func run(_ rig: DeliveryRig, as device: String, _ body: (Engine) async throws -> Void) async throws {
    let engine = try await rig.engine(Self.snapshot(device: device))
    try await body(engine)
    await engine.stop()
  }

  private func deliver(_ rig: DeliveryRig, _ engine: Engine, total: Int) async throws {
    rig.transport.set(ScriptedTransport.accept)
    #expect(try await rig.runs { try await DeliveryTests.ledger(engine)[.delivered] == total })
  }

  @Test(
    "what may have left goes again as the device that it left as; the new one has a chain of its own, restarts or not",
    arguments: [false, true])
  func change(overRestart: Bool) async throws {
    let rig = DeliveryRig(ScriptedTransport { _ in ScriptedTransport.failure(.reset, mayHaveLeft: true) })
    try await run(rig, as: "old") { engine in
      // A row that was stored before the change may be claimed before it, too: the third comes after it.
      await rig.report(1...2, to: engine)
      #expect(await rig.runs { rig.transport.requests.count >= 2 })
      if overRestart { return }
      await engine.publish(Self.snapshot(device: "new"))
      try await deliver(rig, engine, total: 2)
      await rig.report([3], to: engine)
      try await deliver(rig, engine, total: 3)
    }
    for number in (overRestart ? 3 : 4)...5 {
      try await run(rig, as: "new") { engine in
        try await deliver(rig, engine, total: number - 1)
        await rig.report([number], to: engine)
        try await deliver(rig, engine, total: number)
      }
    }
    let requests = rig.transport.requests
    #expect(devices(requests).values.allSatisfy { $0.count == 1 }, "a packet is one device's: \(devices(requests))")
    let taken = requests.suffix(4)
    #expect(try taken.map(DeliveryRig.numbers) == [[1, 2], [3], [4], [5]])
    #expect(taken.map { $0.header("Prism-Device-Id") } == ["old", "new", "new", "new"])
    let ids = taken.map { $0.header("Prism-Packet-Id") }
    #expect(taken.map { $0.header("Prism-Depends-On") } == [nil, nil, ids[1], ids[2]])
  }

  @Test("a stop before the new device's first packet was accepted doesn't tie it to the old one's chain")
  func stopBetween() async throws {
    let rig = DeliveryRig()
    try await run(rig, as: "old") { engine in
      await rig.report([1], to: engine)
      try await deliver(rig, engine, total: 1)
      await engine.publish(Self.snapshot(device: "new"))
      rig.transport.set { ScriptedTransport.answer(503, to: $0) }
      await rig.report([2], to: engine)
      #expect(await rig.runs { rig.transport.requests.count >= 3 })
    }
    try await run(rig, as: "newer") { engine in
      await rig.report([3], to: engine)
      try await deliver(rig, engine, total: 3)
    }
    let taken = rig.transport.requests.suffix(2)
    #expect(taken.map { $0.header("Prism-Device-Id") } == ["new", "newer"])
    #expect(taken.map { $0.header("Prism-Depends-On") } == [nil, nil])
  }

  @Test("its note is read as it was written, and a damaged one is ignored")
  func note() {
    for former in [nil, PacketID("01932e6a-7c00-7abc-8def-0123456789ab")] {
      let sender = StreamIdentity(deviceID: "kiosk-7", former: former)
      #expect(StreamIdentity(note: sender.note) == sender)
    }
    for text in ["", "kiosk-7", "kiosk-7\nkiosk-6\n", "\n\n", "a\na\nb\nc"] {
      #expect(StreamIdentity(note: Array(text.utf8)) == nil, "\(text)")
    }
  }
}
