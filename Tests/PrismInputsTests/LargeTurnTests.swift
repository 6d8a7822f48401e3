import PrismProtocol
import PrismTestSupport
import Synchronization
import Testing

@testable import PrismInputs

/// The memory of requests of other inputs, and the turns of those that need more.
@Suite struct LargeTurnTests {
  private final class Ran: Sendable {
    private let users = Mutex<[UInt32]>([])
    private let open = Mutex(0)
    let most = Mutex(0)
    var all: [UInt32] { users.withLock { $0 } }

    func begin(_ user: UInt32) {
      users.withLock { $0.append(user) }
      let count = open.withLock { open in
        open += 1
        return open
      }
      most.withLock { $0 = max($0, count) }
    }
    func end() { open.withLock { $0 -= 1 } }
  }

  @Test("one runs at a time, and users have turns: one with many requests waits for itself") func turns() async {
    let (turns, ran) = (LargeTurns(), Ran())
    let (begin, first) = AsyncStream.makeStream(of: Void.self)
    await withTaskGroup(of: Void.self) { group in
      for (count, user) in [(1, UInt32(9)), (20, 1), (3, 2), (1, 3)] {
        for _ in 0..<count {
          let waiting = await turns.waiters.count
          group.addTask {
            await turns.run(for: user) {
              ran.begin(user)
              if user == 9 { for await _ in begin { break } }
              await Task.yield()
              ran.end()
            }
          }
          // In this order: the next one comes when this one waits, or runs.
          while await turns.waiters.count == waiting, ran.all.isEmpty || user != 9 { await Task.yield() }
        }
      }
      first.finish()
    }
    #expect(ran.most.withLock { $0 } == 1)
    #expect(ran.all.prefix(7) == [9, 1, 2, 3, 1, 2, 1])
    #expect(ran.all.count == 25)
  }

  @Test("a record with too many parts is left out before its parts are collected") func manyParts() throws {
    var attributes: [UInt8] = []
    for _ in 0..<300_000 { attributes += [0x32, 0] }
    let request = try DecodedOTLP(
      protobuf: OTLPBoundsTests.logs([attributes, OTLPBoundsTests.text(0x41, 3)]), .logs)
    #expect(request.recordCount == 1 && request.unusable == ["over 100000 fields": 1])
  }

  @Test("an event whose JSON would be too large is left out, and the next one is taken") func largeEvent() throws {
    let controls: [UInt8] = [0xDB, 0, 0x20, 0, 0] + [UInt8](repeating: 1, count: 0x20_0000)
    let (small, list): ([UInt8], [UInt8]) = ([0xA1, 0x78], [0xDD, 0, 0x10, 0, 0])
    let numbers = list + [UInt8](repeating: 0xCB, count: 9 * 0x10_0000)
    let nothing = list + [UInt8](repeating: 0xC0, count: 0x10_0000)
    for value in [small, controls, numbers, nothing] {
      var frame: [UInt8] = [0x92, 0xA1, 0x74, 0x92, 0x92, 1, 0x81, 0xA1, 0x61]
      frame += value
      frame += [0x92, 2, 0x81, 0xA1, 0x61, 7] as [UInt8]
      let message = try ForwardVectorTests.read(frame)
      #expect(message.events.count + message.unusableCount == 2)
      #expect(message.events.last?.members == Array(#""a":7"#.utf8))
    }
  }
}
