import Testing

@testable import PrismEngine

@Suite("How much is claimed behind the packet that is on its way")
struct ClaimPlanTests {
  @Test(
    "small packets many at once, large ones while those before them are built, the largest one by one",
    arguments: [
      // bytes of the last packet, packets a commit, the most behind which more are claimed
      (nil, 1, 1),
      (100, 16, 16),
      (131_072, 16, 16),
      (131_073, 15, 15),
      (600_000, 3, 3),
      (2_097_153, 1, 1),
      (8_388_608, 1, 1),
      (8_388_609, 1, 0),
      (67_108_864, 1, 0),
    ] as [(Int?, Int, Int)])
  func portions(bytes: Int?, portion: Int, aheadMax: Int) {
    #expect(ClaimPlan.portion(lastPacketBytes: bytes, flowRestBytes: nil) == portion)
    #expect(ClaimPlan.wantsMore(ahead: 0, lastPacketBytes: bytes, flowRestBytes: nil))
    #expect(ClaimPlan.wantsMore(ahead: aheadMax, lastPacketBytes: bytes, flowRestBytes: nil))
    #expect(!ClaimPlan.wantsMore(ahead: aheadMax + 1, lastPacketBytes: bytes, flowRestBytes: nil))
  }

  @Test("what lies ready is bounded: 4 MiB, or two packets of up to 8 MiB each, or one")
  func bounds() {
    for bytes in stride(from: 1000, through: 64 << 20, by: 7919) {
      let most = (0...32).last { ClaimPlan.wantsMore(ahead: $0, lastPacketBytes: bytes, flowRestBytes: nil) }!
      let packets = most + ClaimPlan.portion(lastPacketBytes: bytes, flowRestBytes: nil)
      #expect(packets * bytes <= 4 << 20 || packets <= 2 && bytes <= 8 << 20 || packets == 1)
    }
  }

  @Test(
    "where traffic costs, packets are claimed ahead only as far as the budget carries them",
    arguments: [
      // bytes of the last packet, rest of the budget, packets a commit, packets ahead from which no more are claimed
      (1_048_576, 0, 1, 0),
      (1_048_576, 1_048_575, 1, 0),
      (1_048_576, 1_048_576, 1, 1),
      (100, 1000, 10, 10),
      (100, -1, 1, 0),
    ])
  func budget(bytes: Int, rest: Int, portion: Int, ahead: Int) {
    #expect(ClaimPlan.portion(lastPacketBytes: bytes, flowRestBytes: rest) == portion)
    #expect(ahead == 0 || ClaimPlan.wantsMore(ahead: ahead - 1, lastPacketBytes: bytes, flowRestBytes: rest))
    #expect(!ClaimPlan.wantsMore(ahead: ahead, lastPacketBytes: bytes, flowRestBytes: rest))
  }
}
