import Glibc
import PrismBase
import PrismPacket
import PrismTestSupport
import Testing

@testable import PrismCollector

@Suite("Where devices are remembered")
struct DeviceStoreTests {
  private static let now: Int64 = 1_700_000_000_123
  private let rig = StoreRig()

  /// - Returns: two that share what they store, as a collector and a command do.
  private func stores(_ kind: StoreRig.Fleet) async throws -> [DeviceStore] {
    let database = try await rig.fleet(kind)
    return [DeviceStore(database), DeviceStore(database)]
  }

  private func token(devicesMax: Int = 100) -> (text: String, token: EnrollmentToken) {
    EnrollmentToken.new(keyID: "main", devicesMax: devicesMax, expireTime: Self.now + 1000)
  }

  private static func key(_ byte: UInt8 = 1) throws -> SealingPublicKey {
    try #require(SealingPublicKey([UInt8](repeating: byte, count: 32)))
  }

  private func enroll(
    _ device: String, _ text: String, _ store: DeviceStore, key: UInt8 = 1
  ) async throws -> EnrollmentDecision {
    try await store.enroll(
      EnrollmentRequest(deviceID: device, publicKey: try Self.key(key), info: "rack 1"),
      tokenHash: EnrollmentToken.hash(of: text), now: Self.now)
  }

  @Test("what one process stores, another reads: tokens, devices, who is revoked", arguments: StoreRig.Fleet.allCases)
  func shared(kind: StoreRig.Fleet) async throws {
    let stores = try await stores(kind)
    let (text, token) = token()
    try await stores[0].add(token)
    #expect(try await stores[1].tokens() == [token])
    #expect(try await enroll("d1", text, stores[1]) == .enroll(keyID: "main", generation: 0))
    #expect(try await enroll("d1", text, stores[0]) == .answerAgain(keyID: "main", generation: 0))
    #expect(try await enroll("d1", text, stores[0], key: 2) == .refuse(.knownDevice))
    #expect(try await enroll("d1", "guessed", stores[0]) == .refuse(.unknownToken))
    #expect(try await stores[0].tokens().map(\.devices) == [1], "one device, however often it asks")
    var device = EnrolledDevice(id: "d1")
    (device.keyID, device.enrolledTime, device.token, device.info) = ("main", Self.now, token.name, "rack 1")
    device.publicKey = try Self.key().base64
    #expect(try await stores[0].page(after: "", limit: 10) == [device])
    try await stores[0].setRevoked("d1", at: Self.now + 5)
    try await stores[0].setRevoked("stranger", at: Self.now)
    #expect(try await stores[1].standings() == ["d1": .init(isRevoked: true), "stranger": .init(isRevoked: true)])
    #expect(try await enroll("d1", text, stores[1]) == .refuse(.revokedDevice))
    #expect(try await stores[1].forget("d1"))
    #expect(try await stores[1].forget("d1") == false)
    let standings = try await stores[1].standings()
    #expect(standings["d1"] == .init(isRevoked: true, generation: 1), "a forgotten device stays revoked")
    try await stores[1].setRevoked("d1", at: nil)
    #expect(try await enroll("d1", text, stores[0]) == .refuse(.sentBefore), "it enrolls by its name only")
    let named = EnrollmentToken.new(keyID: "main", devicesMax: 1, expireTime: Self.now + 1000, device: "d1")
    try await stores[0].add(named.token)
    #expect(try await stores[1].tokens().contains(named.token))
    #expect(try await enroll("d9", named.text, stores[0]) == .refuse(.otherDevice))
    #expect(try await enroll("d1", named.text, stores[0]) == .enroll(keyID: "main", generation: 1))
    #expect(try await enroll("d1", named.text, stores[1]) == .answerAgain(keyID: "main", generation: 1))
    #expect(try await stores[0].removeToken(token.name))
    #expect(try await stores[0].removeToken(token.name) == false)
    #expect(try await enroll("d2", text, stores[1]) == .refuse(.unknownToken))
    #expect(try await stores[1].device("d2") == nil, "a refused device leaves nothing")
    #expect(try await stores[1].page(after: "d1", limit: 1).map(\.id) == ["stranger"])
  }

  @Test("a file that root's command makes is the folder's owner's", .enabled(if: geteuid() == 0)) func owner()
    async throws
  {
    try #require(chown(rig.path, 65_534, 65_534) == 0)
    #expect(try await DeviceStore(.folder(rig.path)).tokens().isEmpty)
    for name in rig.names where name.hasPrefix("fleet.db") {
      var facts = stat()
      #expect(stat("\(rig.path)/\(name)", &facts) == 0 && facts.st_uid == 65_534, "\(name)")
    }
    #expect(rig.names.contains("fleet.db"))
  }

  @Test("a token enrolls no more devices than it may, even if many ask at once", arguments: StoreRig.Fleet.allCases)
  func counted(kind: StoreRig.Fleet) async throws {
    let stores = try await stores(kind)
    let (text, token) = token(devicesMax: 5)
    try await stores[0].add(token)
    let decisions = try await withThrowingTaskGroup(of: EnrollmentDecision.self) { group in
      for number in 0..<20 { group.addTask { try await enroll("d\(number)", text, stores[number % 2]) } }
      return try await group.reduce(into: []) { $0.append($1) }
    }
    #expect(decisions.count { $0 == .enroll(keyID: "main", generation: 0) } == 5)
    #expect(decisions.count { $0 == .refuse(.usedUpToken) } == 15)
    #expect(try await stores[1].page(after: "", limit: 100).count == 5)
  }
}
