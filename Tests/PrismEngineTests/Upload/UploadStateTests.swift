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

  static let steps: [(State, State.Event, State, State.Action)] = [
    (.idle, .wanted, .draining(), .drain),
    (.idle, .failed(pause(.held)), paused(.held), .wait(until: .seconds(130))),
    (.idle, .ended, .idle, .nothing), (.idle, .trigger(.flush, tryAt: now), .idle, .nothing),
    (.idle, .stop, .stopped, .nothing),
    (.draining(), .wanted, .draining(isWanted: true), .nothing),
    (.draining(isWanted: true), .ended, .draining(), .drain),
    (.draining(isWanted: true), .failed(pause(.failure)), paused(.failure), .wait(until: .seconds(130))),
    (.draining(), .ended, .idle, .nothing),
    (.draining(), .failed(pause(.asked)), paused(.asked), .wait(until: .seconds(130))),
    (.draining(), .trigger(.reload, tryAt: now), .draining(triggers: [.reload]), .nothing),
    (.draining(), .stop, .stopped, .nothing),
    (paused(.failure), .wanted, paused(.failure), .wait(until: .seconds(130))),
    (paused(.failure, until: 100), .wanted, .draining(), .drain),
    (paused(.held, until: 99), .wanted, .draining(), .drain),
    (paused(.failure), .ended, paused(.failure), .nothing),
    (
      paused(.failure), .failed(pause(.asked, until: 500)), paused(.asked, until: 500), .wait(until: .seconds(500))
    ),
    (paused(.failure), .stop, .stopped, .nothing),
    (.stopped, .wanted, .stopped, .nothing), (.stopped, .failed(pause(.held)), .stopped, .nothing),
    (.stopped, .trigger(.newCollector, tryAt: now), .stopped, .nothing), (.stopped, .ended, .stopped, .nothing),
  ]

  @Test("every event in every state has its one outcome", arguments: steps)
  func handles(state: State, event: State.Event, next: State, action: State.Action) {
    var state = state
    #expect(state.handle(event, now: Self.now) == action)
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
      #expect(
        state.handle(.trigger(trigger, tryAt: .seconds(101)), now: Self.now) == .wait(until: .seconds(until)),
        "\(trigger)")
      #expect(state == Self.paused(reason, until: until))
    }
  }

  @Test("a trigger that came while the failing POST was on its way counts after it", arguments: endings)
  func hopesWhileDraining(reason: State.Pause.Reason, endedBy: Set<State.RetryTrigger>) {
    for trigger in State.RetryTrigger.allCases {
      var state = State.draining()
      #expect(state.handle(.trigger(trigger, tryAt: Self.now), now: Self.now) == .nothing)
      _ = state.handle(.failed(Self.pause(reason)), now: Self.now)
      #expect(state == Self.paused(reason, until: endedBy.contains(trigger) ? 100 : 130), "\(trigger)")
    }
  }

  @Test("a trigger never makes a pause longer") func neverLonger() {
    var state = Self.paused(.failure)
    #expect(state.handle(.trigger(.network, tryAt: .seconds(500)), now: Self.now) == .wait(until: .seconds(130)))
  }
}
