import PrismAdmission
import PrismBase
import PrismConfig
import PrismControl
import PrismPacket
import PrismProtocol
import PrismStore
import PrismTestSupport
import Synchronization
import Testing

@testable import PrismEngine

/// Packets at the limit of their key.
@Suite struct KeyLimitTests {
  private static func keys(_ blocksMax: Int, _ file: MemoryFile = MemoryFile()) -> KeyUse {
    KeyUse(file: file, blocksMax: blocksMax, log: Logger(write: { _ in }))
  }

  private static func namespaces(_ secret: Secret = DeliveryRig.key, id: String = "main") -> Snapshot {
    var snapshot = DeliveryRig.snapshot {
      $0.maxItem = 1
      $0.keyId = id
    }
    var other = snapshot.namespaces[NamespaceName("shop")!]!
    other.name = NamespaceName("pay")!
    snapshot.namespaces[other.name] = other
    snapshot.daemon.keys = [.init(id: id, file: "/\(id).key", secret: secret)]
    return snapshot
  }

  @Test("at the limit nothing leaves and nothing is lost, status and doctor say why; a reload with a new key goes on")
  func held() async throws {
    let (rig, file) = (DeliveryRig(), MemoryFile())
    let keys = Self.keys(4, file)
    let engine = try await rig.engine(Self.namespaces(), keys: keys)
    await rig.report(1...6, to: engine)
    let pipeline = try #require(await engine.pipelines[NamespaceName("shop")!])
    #expect(
      await rig.runs {
        let isHeld = await pipeline.status.isHeld
        return isHeld && rig.transport.requests.count == 4
      })
    #expect(await pipeline.status.heldBy?.cause.contains("the key `main` has encrypted 4 blocks") == true)
    #expect(await pipeline.explain(.meta, ReportType("order")!)?.gate == .key)
    let page = await engine.metrics(
      store: nil, ingest: .init(), remote: .init(), process: .init(), version: "1")
    #expect(page.contains("prism_key_blocks{key=\"main\"} 4") && page.contains("prism_key_blocks_limit 4"))
    let findings = await Doctor(engine: engine, process: .init()).findings()
    #expect(findings.contains { $0.check == "key main" && $0.result == .fault })

    let second = Secret((0..<16).map { UInt8($0 + 100) })
    rig.transport.set { request in
      ScriptedTransport.answer(200, ScriptedTransport.receipt(for: request, key: second), to: request)
    }
    await engine.publish(Self.namespaces(second, id: "second"))
    // Without the probe of the doctor.
    func packets() -> [TransferRequest] { rig.transport.requests.filter { $0.packetHeaders != nil } }
    #expect(await rig.runs { packets().count == 6 })
    #expect(packets().suffix(2).allSatisfy { $0.packetHeaders?.format.keyID == "second" })
    await engine.stop()
  }

  @Test("namespaces that share a key share its count, and each attempt counts")
  func shared() async throws {
    let rig = DeliveryRig()
    let attempts = Mutex(0)
    rig.transport.set { request in
      let number = attempts.withLock { count in
        count += 1
        return count
      }
      return number == 1
        ? ScriptedTransport.answer(503, to: request) : await ScriptedTransport.accept(request)
    }
    let keys = Self.keys(1000)
    let engine = try await rig.engine(Self.namespaces(), keys: keys)
    await rig.report(1...2, to: engine)
    await rig.report(3...4, in: "pay", to: engine)
    #expect(await rig.runs { rig.transport.requests.count == 5 })
    await rig.report([5], of: "scan", payload: [1, 2, 3], to: engine)
    #expect(await rig.runs { rig.transport.requests.count == 7 })
    // A meta block each, and the payload's own.
    let fingerprint = try CountedKey(id: "main", secret: DeliveryRig.key).fingerprint
    #expect(keys.report(of: fingerprint).blocks == 5 + 1 + 2)
    await engine.stop()
  }

  @Test("an engine that is killed never counts too little: the next one goes on from what was written")
  func killed() async throws {
    let file = MemoryFile()
    let fingerprint = try CountedKey(id: "main", secret: DeliveryRig.key).fingerprint
    var sent = 0
    for run in 1...3 {
      let rig = DeliveryRig()
      let keys = Self.keys(1 << 32, file)
      let engine = try await rig.engine(Self.namespaces(), keys: keys)
      #expect(keys.report(of: fingerprint).blocks >= sent)
      await rig.report(1...run, to: engine)
      #expect(await rig.runs { rig.transport.requests.count == run })
      sent += run
      let bytes = try #require(file.bytes)
      #expect(KeyCountFile.counts(bytes)?[fingerprint]?.blocks ?? 0 >= sent)
    }
  }
}
