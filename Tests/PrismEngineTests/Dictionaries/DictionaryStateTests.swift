import PrismPacket
import PrismTestSupport
import Testing

@testable import PrismEngine

@Suite("The dictionary of a namespace")
struct DictionaryStateTests {
  private static func trained(_ word: String) -> CompressionDictionary {
    CompressionDictionary.trained(
      from: (0..<2000).map {
        Array(#"{"MONITOR_TYPE":"\#(word)","n":\#($0),"host":"\#(word)\#($0 % 7).example"}"#.utf8)
      },
      bytesMax: 2048)!
  }
  private static let (first, second) = (trained("net"), trained("boot"))

  @Test("the first answer asks; one question at a time; without news once an hour") func asks() {
    var state = DictionaryState()
    func asks(_ announced: UInt32?, at now: Duration) -> Bool { state.shouldAsk(announced: announced, now: now) }
    #expect(asks(nil, at: .seconds(5)))
    #expect(!asks(7, at: .seconds(10_000)), "a question is on its way")
    state.answered(nil)
    #expect(!asks(nil, at: .seconds(3604)))
    #expect(asks(nil, at: .seconds(3605)))
  }

  @Test("a new dictionary is asked for at once, but not more often than once a minute") func news() {
    var state = DictionaryState()
    func asks(_ announced: UInt32?, at now: Duration) -> Bool { state.shouldAsk(announced: announced, now: now) }
    #expect(asks(nil, at: .zero))
    state.answered(nil)
    #expect(!asks(Self.first.id, at: .seconds(59)))
    #expect(asks(Self.first.id, at: .seconds(60)))
    state.answered(nil)
    #expect(!asks(Self.first.id, at: .seconds(3000)), "it failed, and is not news")
    #expect(asks(Self.first.id, at: .seconds(3660)))
    state.answered(Self.first)
    #expect(!asks(Self.first.id, at: .seconds(100_000)), "it is held")
    #expect(asks(Self.second.id, at: .seconds(100_000)))
    state.answered(nil)
    #expect(state.held == Self.first, "an answer without a dictionary takes no other one away")
  }

  @Test("what was noted is held after a restart; a damaged note is as good as no note") func restarts() {
    #expect(DictionaryState(note: Self.first.bytes).held == Self.first)
    #expect(DictionaryState(note: Array(Self.first.bytes.prefix(9))).held == nil)
    #expect(DictionaryState(note: []).held == nil)
  }
}
