import PrismProtocol
import PrismTestSupport
import Testing

@testable import PrismStore

@Suite("A namespace's rows are its own")
struct IsolationTests {
  private let rig = Rig()
  private let other = NamespaceName("other")!

  @Test("an update of one app, its expiry and its removal leave the rows of another where they are")
  func leavesOthersAlone() async throws {
    func policy(_ version: String?, days: Int) -> RetentionPolicy {
      RetentionPolicy(expirationDays: days, isUpdateClear: true, appVersion: version, maxBodyBytes: 1 << 20)
    }
    let store = try await rig.open()
    _ = await store.append([rig.batch(1...3, payload: [1]), rig.batch(4...6, in: other, payload: [2])])
    try await store.apply([Rig.shop: policy("1", days: 1), other: policy("1", days: 30)])
    try await store.apply([Rig.shop: policy("2", days: 1), other: policy("1", days: 30)])
    _ = await store.append([rig.batch([7])])
    rig.time.move(days: 2)
    _ = try await store.maintain()
    _ = await store.append([rig.batch([8])])
    _ = try await store.remove(.all, of: Rig.shop)
    let left = try await store.ledger()
    #expect(left[.cleared] == 3 && left[.expired] == 1 && left[.removed] == 1)
    for kind in RowKind.reports { #expect(try await store.ledger(other, kind)[.waiting] == 3) }
    #expect(try await store.claim(rig.claim(other))?.numbers == [4, 5, 6])
  }
}
