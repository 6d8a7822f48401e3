import PrismBase
import PrismConfig
import PrismPacket
import PrismProtocol
import PrismStore
import PrismTestSupport
import Testing

@testable import PrismEngine

/// Reports that a server has a device erase by a signed command (docs/records.md, "Commands").
@Suite struct EraseCommandTests {
  private static func rules(
    _ change: (inout DaemonConfiguration.Commands) -> Void = { _ in }
  ) -> DaemonConfiguration.Commands {
    CommandRig.rules {
      $0.publicKey = CommandRig.key.publicKey
      change(&$0)
    }
  }

  /// It has the digest of `4`, and not the value, which would stay in the record of the command.
  private static let order =
    "customer.id = sha256:4b227777d4dd1fc61c6f884f48641d02b4d121d3fd328cb08b5531fcacdabf8a"

  /// Kept reports: they do not leave meanwhile.
  private func store(_ numbers: Range<Int>, _ engine: Engine) async {
    var batch = ReportBatch(
      namespace: CommandRig.shop, userID: 1000, context: CommonContext(members: Array(#""APP_NAME":"till""#.utf8)),
      quota: StoreQuota(bytesMax: 1 << 30, evictsOldest: false, ringBytesMax: 1 << 24), app: nil)
    batch.types = [.init(type: ReportType("log")!, priority: .kept, isRealtime: false)]
    for number in numbers {
      let start = batch.arena.count
      batch.arena += #""customer":{"id":\#(number)}"#.utf8
      batch.rows.append(.init(type: 0, createdTime: 1000, body: start..<batch.arena.count, metaBytes: 100))
    }
    await withCheckedContinuation { done in
      engine.ingest.append([batch], notes: []) { _ in done.resume() }
    }
  }

  private func kept(_ engine: Engine) async throws -> Int {
    let ledger = try await engine.parts.store.status()[CommandRig.shop]?[.meta]?.ledger ?? Ledger()
    #expect(ledger.isBalanced)
    return ledger[.kept]
  }

  @Test("a signed erasure takes the reports that it means, and tells how many") func erases() async throws {
    let rig = CommandRig()
    try await rig.run(Self.rules()) { (engine, _) async throws in
      await store(0..<10, engine)
      await store(3..<5, engine)
      let one = rig.request("c1", .erase, ["where": .text(Self.order)])
      rig.insert(one, try one.signed(by: CommandRig.key).fields)
      #expect(try await rig.reaches(.done, engine))
      #expect(
        try await CommandRig.answer(engine)?.result
          == ["reports": 2, "payloads": 0, "dead": 0, "damaged": 0, "inPackets": 0])
      #expect(try await kept(engine) == 10)
      #expect(try ErasedValue(MetaCondition(erasing: "customer.id=4")).text == Self.order)
      let plain = rig.request("c3", .erase, ["where": .text("customer.id = 5")])
      rig.insert(plain, try plain.signed(by: CommandRig.key).fields)
      #expect(try await rig.reaches(.done, engine, "c3"))
      #expect(try await kept(engine) == 9)
      let all = rig.request("c2", .erase, ["all": .truth(true)])
      rig.insert(all, try all.signed(by: CommandRig.key).fields)
      #expect(try await rig.reaches(.done, engine, "c2"))
      #expect(try await kept(engine) == 0)
    }
  }

  struct Refused: Sendable, CustomTestStringConvertible {
    var words: String
    var args: [String: CommandValue] = ["all": .truth(true)]
    var rules = EraseCommandTests.rules()
    var isSigned = true
    var testDescription: String { words }
  }

  static let refused = [
    Refused(words: "erase is not in commands.allow", rules: rules { $0.allow = [.flush] }),
    Refused(words: "has no remote.publicKey", rules: rules { $0.publicKey = nil }, isSigned: false),
    Refused(words: "signed commands only", isSigned: false),
    Refused(words: "erase needs the argument where", args: [:]),
    Refused(words: "erase needs the argument where", args: ["where": .text("id = 1"), "all": .truth(true)]),
    Refused(words: "where must be FIELD=VALUE", args: ["where": .text("id > 1")]),
    Refused(words: "where must be FIELD=VALUE", args: ["where": .text("id =")]),
    Refused(words: "where must be a text", args: ["where": .text("")]),
    Refused(words: "where needs keys", args: ["where": .text("= 1")]),
    Refused(words: "no argument other", args: ["all": .truth(true), "other": .integer(1)]),
  ]

  @Test("one that is unsigned, not allowed or unclear erases nothing, and says why", arguments: refused)
  func refusals(_ one: Refused) async throws {
    let rig = CommandRig()
    try await rig.run(one.rules) { (engine, _) async throws in
      await store(0..<10, engine)
      let request = rig.request("c1", .erase, one.args)
      rig.insert(request, one.isSigned ? try request.signed(by: CommandRig.key).fields : nil)
      #expect(try await rig.reaches(.refused, engine))
      let result = try await CommandRig.answer(engine)?.result?.string ?? ""
      #expect(result.contains(one.words), "\(result)")
      #expect(try await kept(engine) == 10)
    }
  }
}
