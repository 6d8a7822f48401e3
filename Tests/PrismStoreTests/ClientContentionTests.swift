import Foundation
import PrismProtocol
import PrismStore
import PrismTestSupport
import Testing

/// While several clients send, what the store does at a time is short (docs/store.md, "Several clients").
@Suite struct ClientContentionTests {
  private let rig = Rig()

  private var logBytes: Int {
    get throws {
      try FileManager.default.attributesOfItem(atPath: rig.path + "-wal")[.size] as? Int ?? 0
    }
  }

  @Test(
    "the log is copied when it has 1 MiB beside other clients, and when it has 16 MiB without",
    arguments: [true, false])
  func log(hasContention: Bool) async throws {
    let store = try await rig.open()
    var most = 0
    for round in 0..<80 {
      if hasContention { store.contention.note() }
      _ = await store.append([rig.batch(round * 1000..<round * 1000 + 1000)])
      most = max(most, try logBytes)
    }
    #expect(hasContention ? most < 2 << 20 : most > 3 << 20)
    await store.close()
  }

  @Test("contention lasts a second after the last commit for one of several")
  func lasting() async throws {
    let store = try await rig.open()
    #expect(!store.contention.isPresent)
    store.contention.note()
    rig.time.advance(by: .milliseconds(999))
    #expect(store.contention.isPresent)
    rig.time.advance(by: .milliseconds(1))
    #expect(!store.contention.isPresent)
    await store.close()
  }
}
