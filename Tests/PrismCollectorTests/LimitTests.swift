import PrismBase
import PrismConfig
import PrismHTTP
import PrismPacket
import PrismProtocol
import PrismTestSupport
import Testing

@testable import PrismCollector

/// The work that a key holder can cause at the collector: limits are checked before it.
@Suite("The collector's limits")
struct LimitTests {
  private static func openers(memoryBytesMax: Int = 64 << 20) -> PacketOpeners {
    PacketOpeners(keys: SenderKeys(["main": CollectorTests.key]), memoryBytesMax: memoryBytesMax)
  }

  /// The refusal of a packet of these metas; nil: it is taken.
  private static func refusal(
    of metas: [UInt8], payloads: [[UInt8]] = [], itemCount: Int, by openers: PacketOpeners = openers()
  ) async throws -> CollectorRefusal? {
    let context = CollectorTests.context(payloads.isEmpty ? .meta : .payload)
    let packet = try PacketWriter(cipher: .aes128GCM, keyID: "main", key: CollectorTests.key).write(
      CollectorTests.packetHeaders(context, itemCount: itemCount), metas: metas, payloads: payloads)
    let request = try CollectorTests.request(
      context, metas: ["{}"], payloads: payloads.isEmpty ? [] : [[]],
      changing: ["prism-item-count": String(itemCount), "prism-encoding": packet.headers.format.encoding.rawValue])
    do throws(CollectorRefusal) {
      _ = try await openers.open(try Delivery(request, kind: context.kind, now: 0), body: packet.body)
      return nil
    } catch { return error }
  }

  @Test(
    "a packet that is too large is 413 before anything of it is unpacked",
    arguments: [
      ("11 million empty objects as one row", "{}\n", 11_000_000, 1),
      ("as 3,000 rows, which would be allowed 30 MiB", "{}\n", 11_000_000, 3000),
      ("more rows than a packet has", "{}\n", 10_001, 10_001),
    ])
  func tooLarge(name: String, line: String, count: Int, itemCount: Int) async throws {
    let metas = [UInt8](String(repeating: line, count: count).utf8.dropLast())
    let openers = Self.openers()
    let refusal = try #require(try await Self.refusal(of: metas, itemCount: itemCount, by: openers))
    #expect(refusal.status == 413 && refusal.code == .tooLarge)
    #expect(openers.memory.usedBytes == 0)
  }

  @Test("common information of each row, and metas that must be merged, are held to the memory of all packets")
  func commons() async throws {
    let pad = String(repeating: "x", count: 3000)
    let lines = (0..<400).map { n in #"{"$common":{"n":\#(n),"pad":"\#(pad)"}}"# + "\n" + #"{"a":\#(n)}"# }
    let merged = [#"{"$common":{"n":1,"pad":"\#(pad)"}}"#] + (0..<1600).map { #"{"a":\#($0),"n":0}"# }
    for (text, itemCount) in [(lines, 400), (merged, 1600)] {
      let metas = Array(text.joined(separator: "\n").utf8)
      let openers = Self.openers(memoryBytesMax: 4 << 20)
      let refusal = try #require(try await Self.refusal(of: metas, itemCount: itemCount, by: openers))
      #expect(refusal.status == 413 && refusal.code == .tooLarge && openers.memory.usedBytes == 0)
      #expect(try await Self.refusal(of: metas, itemCount: itemCount) == nil)
    }
  }

  @Test("a payload is held to the memory of all packets")
  func payloads() async throws {
    let zeros = [UInt8](repeating: 0, count: 8 << 20)
    let openers = Self.openers(memoryBytesMax: 4 << 20)
    let refusal = try #require(
      try await Self.refusal(of: [0x7B, 0x7D], payloads: [zeros], itemCount: 1, by: openers))
    #expect(refusal.status == 413 && refusal.code == .tooLarge)
    #expect(try await Self.refusal(of: [0x7B, 0x7D], payloads: [zeros], itemCount: 1) == nil)
  }

  @Test("a packet that was taken is a duplicate for a collector with less memory, which refuses others like it")
  func lessMemory() async throws {
    let (folder, context) = (TemporaryFolder(), CollectorTests.context(.payload))
    let zeros = [UInt8](repeating: 0, count: 8 << 20)
    func answer(_ context: PacketContext, memoryMByte: Int) async throws -> HTTPResponse {
      var options = CollectorOptions(state: folder.path, keys: ["main": CollectorTests.key])
      options.memoryBytes = memoryMByte << 20
      let collector = try Collector(options, time: ManualTime(), log: Logger(write: { _ in }))
      let answer = await collector.answer(try CollectorTests.request(context, metas: ["{}"], payloads: [zeros]))
      await collector.close()
      return answer
    }
    #expect(try await answer(context, memoryMByte: 64).status == 200)
    let again = try await answer(context, memoryMByte: 4)
    #expect(try again.status == 200 && JSONValue(parsing: again.body)["duplicate"]?.bool == true)
    #expect(again.headers.contains { $0.name == "Prism-Receipt" })
    #expect(try await answer(CollectorTests.context(.payload), memoryMByte: 4).status == 413)
  }

  @Test("a sealed payload that is larger than all memory stays sealed, and its packet is taken", arguments: [4, 64])
  func sealed(memoryMByte: Int) async throws {
    let (key, context) = (try SealingPrivateKey(), CollectorTests.context(.payload))
    let payload = [UInt8](repeating: 0, count: 8 << 20)
    let report = SealedReport(deviceID: context.deviceID, namespace: context.namespace, reportID: "r")
    let sealed = try SealedPayload.seal(payload, to: key.publicKey, of: report)
    let openers = PacketOpeners(
      keys: SenderKeys(["main": CollectorTests.key]), sealed: SealedPayloads(keys: [key]),
      memoryBytesMax: memoryMByte << 20)
    let request = try CollectorTests.request(context, metas: [#"{"REPORT_ID":"r"}"#], payloads: [sealed])
    let packet = try await openers.open(try Delivery(request, kind: .payload, now: 0), body: request.body)
    #expect(packet.payloads == [memoryMByte == 4 ? sealed : payload])
  }

  @Test("the largest packet is taken: 10,000 rows; a meta of 10,240 bytes, but not of a byte more")
  func largest() async throws {
    let rows = [UInt8]((0..<10_000).map { #"{"n":\#($0)}"# }.joined(separator: "\n").utf8)
    #expect(try await Self.refusal(of: rows, itemCount: 10_000) == nil)
    let meta = #"{"a":""# + String(repeating: "x", count: Limits.metaBytesMax - 8) + #""}"#
    #expect(try await Self.refusal(of: Array(meta.utf8), itemCount: 1) == nil)
    let over = try #require(try await Self.refusal(of: Array((meta + " ").utf8), itemCount: 1))
    #expect(over.status == 413 && over.code == .tooLarge)
  }

  @Test("rows that were not announced end the work at the first of them")
  func miscounted() async throws {
    let metas = [UInt8](String(repeating: "{}\n", count: 3_000_000).utf8)
    let refusal = try #require(try await Self.refusal(of: metas, itemCount: 1000))
    #expect(refusal.status == 400 && refusal.code == .countMismatch)
  }

  @Test("memory is given back however a packet ends, and to those who wait first", .timeLimit(.minutes(10)))
  func memory() async throws {
    let budget = MemoryBudget(bytesMax: 100)
    var first = await budget.take(80)
    #expect(first != nil)
    #expect(await budget.take(101) == nil, "there will never be as much")
    let large = Task { await budget.take(90) }
    while budget.waitingCount < 1 { await Task.yield() }
    let small = Task { await budget.take(10) }
    while budget.waitingCount < 2 { await Task.yield() }
    #expect(budget.usedBytes == 80, "the small one waits behind the large one, though there is room for it")
    withExtendedLifetime(first) {}
    first = nil
    let leases = (await large.value, await small.value)
    #expect(leases.0 != nil && leases.1 != nil && budget.usedBytes == 100)
  }

  @Test(
    "too many packets that wait for memory: the next one is refused with a time to come again", .timeLimit(.minutes(10))
  )
  func waiting() async throws {
    let budget = MemoryBudget(bytesMax: 10)
    let lease = try #require(await budget.take(10))
    let waiting = (0..<MemoryBudget.waitingMax).map { _ in Task { await budget.take(1) != nil } }
    while budget.waitingCount < MemoryBudget.waitingMax { await Task.yield() }
    #expect(await budget.take(1) == nil)
    withExtendedLifetime(lease) {}
    _ = consume lease
    for wait in waiting { #expect(await wait.value) }
    #expect(budget.usedBytes == 0)
  }
}
