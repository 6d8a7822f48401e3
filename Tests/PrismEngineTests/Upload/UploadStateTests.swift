import Testing

@testable import PrismEngine

@Suite("The state of an upload")
struct UploadStateTests {
  typealias State = UploadState
  static let now: Duration = .seconds(100)

  static func paused(_ reason: State.Pause.Reason, until seconds: Int = 130) -> State {
    .paused(pause(reason, until: seconds))
  }
  static func pause(_ reason: State.Pause.Reason, until seconds: Int = 130) -> State.Pause {
    State.Pause(until: .seconds(seconds), reason: reason)
  }

  static let steps: [(State, State.Event, State, Bool)] = [
    (.idle, .wanted, .draining(), true),
    (.idle, .failed(pause(.held)), paused(.held), false),
    (.idle, .ended, .idle, false), (.idle, .trigger(.flush, tryAt: now), .idle, false),
    (.idle, .stop, .stopped, false),
    (.draining(), .wanted, .draining(isWanted: true), false),
    (.draining(isWanted: true), .ended, .draining(), true),
    (.draining(isWanted: true), .failed(pause(.failure)), paused(.failure), false),
    (.draining(), .ended, .idle, false),
    (.draining(), .failed(pause(.asked)), paused(.asked), false),
    (.draining(), .trigger(.reload, tryAt: now), .draining(triggers: [.reload]), false),
    (.draining(), .stop, .stopped, false),
    (paused(.failure), .wanted, paused(.failure), false),
    (paused(.failure, until: 100), .wanted, .draining(), true),
    (paused(.held, until: 99), .wanted, .draining(), true),
    (paused(.failure), .ended, paused(.failure), false),
    (paused(.failure), .failed(pause(.asked, until: 500)), paused(.asked, until: 500), false),
    (paused(.failure), .stop, .stopped, false),
    (.stopped, .wanted, .stopped, false), (.stopped, .failed(pause(.held)), .stopped, false),
    (.stopped, .trigger(.newCollector, tryAt: now), .stopped, false), (.stopped, .ended, .stopped, false),
  ]

  @Test("every event in every state has its one outcome", arguments: steps)
  func handles(state: State, event: State.Event, next: State, drains: Bool) {
    var state = state
    #expect(state.handle(event, now: Self.now) == drains)
    #expect(state == next)
  }

  static let endings: [(State.Pause.Reason, Set<State.RetryTrigger>)] = [
    (.failure, [.network, .flush, .reload, .newCollector]), (.held, [.flush, .reload, .reread, .newCollector]),
    (.asked, [.newCollector]), (.store, [.flush, .reload, .newCollector]),
  ]

  @Test(
    "what ends a pause early depends on its reason: a reload those that are held, nothing what was asked for",
    arguments: endings)
  func triggers(reason: State.Pause.Reason, endedBy: Set<State.RetryTrigger>) {
    for trigger in State.RetryTrigger.allCases {
      var state = Self.paused(reason)
      let until = endedBy.contains(trigger) ? 101 : 130
      #expect(state.handle(.trigger(trigger, tryAt: .seconds(101)), now: Self.now) == false)
      #expect(state == Self.paused(reason, until: until), "\(trigger)")
    }
  }

  @Test("a trigger that came while the failing POST was on its way counts after it", arguments: endings)
  func hopesWhileDraining(reason: State.Pause.Reason, endedBy: Set<State.RetryTrigger>) {
    for trigger in State.RetryTrigger.allCases {
      var state = State.draining()
      #expect(state.handle(.trigger(trigger, tryAt: Self.now), now: Self.now) == false)
      _ = state.handle(.failed(Self.pause(reason)), now: Self.now)
      #expect(state == Self.paused(reason, until: endedBy.contains(trigger) ? 100 : 130), "\(trigger)")
    }
  }

  @Test("a trigger never makes a pause longer") func neverLonger() {
    var state = Self.paused(.failure)
    #expect(state.handle(.trigger(.network, tryAt: .seconds(500)), now: Self.now) == false)
    #expect(state == Self.paused(.failure))
  }
}
