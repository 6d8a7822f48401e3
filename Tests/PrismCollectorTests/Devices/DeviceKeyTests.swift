import Foundation
import PrismBase
import PrismHTTP
import PrismPacket
import PrismProtocol
import PrismTestSupport
import Testing

@testable import PrismCollector

@Suite("Keys of devices and namespaces")
struct DeviceKeyTests {
  private static let master = Secret((0..<32).map { UInt8($0) })

  private func collector(_ folder: TemporaryFolder, _ rule: KeyRule) throws -> Collector {
    chmod(folder.path, 0o700)
    var options = CollectorOptions(state: folder.path, keys: ["main": Self.master])
    options.keyRules = ["main": rule]
    return try Collector(options, time: SystemTime(), log: Logger(write: { _ in }))
  }

  private func request(
    _ device: String, under key: Secret, namespace: String = "prism"
  ) throws -> (Collector) async -> Int {
    let context = PacketContext(
      deviceID: device, namespace: NamespaceName(namespace)!, packetID: CollectorTests.context(.meta).packetID,
      kind: .meta)
    let request = try CollectorTests.request(context, metas: ["{}"], key: key)
    return { await $0.answer(request).status }
  }

  @Test("under a master each device has a key of its own, which opens no other device's packets")
  func derived() async throws {
    let folder = TemporaryFolder()
    var rule = KeyRule()
    rule.derivesForDevice = true
    let collector = try collector(folder, rule)
    let key = { (device: String) in
      try DeviceKey.derived(master: Self.master, keyID: "main", deviceID: device, cipher: .aes128GCM)
    }
    #expect(try await request("one", under: key("one"))(collector) == 200)
    #expect(try await request("two", under: key("two"))(collector) == 200)
    #expect(try await request("two", under: key("one"))(collector) == 400, "a thief of device one writes as two")
    #expect(try await request("one", under: Secret(Array(Self.master.bytes[..<16])))(collector) == 400)
    await collector.close()
  }

  @Test("a key that is for some namespaces opens no packets of others")
  func namespaces() async throws {
    let folder = TemporaryFolder()
    var rule = KeyRule()
    rule.namespaces = ["shop"]
    let collector = try collector(folder, rule)
    let key = Secret(Array(Self.master.bytes[..<16]))
    #expect(try await request("one", under: key, namespace: "prism")(collector) == 403)
    await collector.close()
  }
}
