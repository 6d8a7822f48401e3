import Testing

@testable import PrismEngine

@Suite("Where an upload stands")
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
    (.idle, .ended, .idle, .nothing), (.idle, .hope(.flush, tryAt: now), .idle, .nothing),
    (.idle, .stop, .stopped, .nothing),
    (.draining(), .wanted, .draining(isWanted: true), .nothing),
    (.draining(isWanted: true), .ended, .draining(), .drain),
    (.draining(isWanted: true), .failed(pause(.failure)), paused(.failure), .wait(until: .seconds(130))),
    (.draining(), .ended, .idle, .nothing),
    (.draining(), .failed(pause(.asked)), paused(.asked), .wait(until: .seconds(130))),
    (.draining(), .hope(.reload, tryAt: now), .draining(hopes: [.reload]), .nothing),
    (.draining(), .stop, .stopped, .nothing),
    (paused(.failure), .wanted, paused(.failure), .wait(until: .seconds(130))),
    (paused(.failure, until: 100), .wanted, .draining(), .drain),
    (paused(.held, until: 99), .wanted, .draining(), .drain),
    (paused(.failure), .ended, paused(.failure), .nothing),
    (paused(.failure), .failed(pause(.held)), paused(.failure), .nothing),
    (paused(.failure), .stop, .stopped, .nothing),
    (.stopped, .wanted, .stopped, .nothing), (.stopped, .failed(pause(.held)), .stopped, .nothing),
    (.stopped, .hope(.newCollector, tryAt: now), .stopped, .nothing), (.stopped, .ended, .stopped, .nothing),
  ]

  @Test("every event in every state has its one outcome", arguments: steps)
  func handles(state: State, event: State.Event, next: State, action: State.Action) {
    var state = state
    #expect(state.handle(event, now: Self.now) == action)
    #expect(state == next)
  }

  static let endings: [(State.Pause.Reason, Set<State.Hope>)] = [
    (.failure, [.network, .flush, .reload, .newCollector]), (.held, [.flush, .reload, .reread, .newCollector]),
    (.asked, [.newCollector]), (.store, [.flush, .reload, .newCollector]),
  ]

  @Test(
    "what ends a pause early depends on its reason: a reload those that are held, nothing what was asked for",
    arguments: endings)
  func hopes(reason: State.Pause.Reason, endedBy: Set<State.Hope>) {
    for hope in State.Hope.allCases {
      var state = Self.paused(reason)
      let until = endedBy.contains(hope) ? 101 : 130
      #expect(
        state.handle(.hope(hope, tryAt: .seconds(101)), now: Self.now) == .wait(until: .seconds(until)), "\(hope)")
      #expect(state == Self.paused(reason, until: until))
    }
  }

  @Test("a hope that came while the failing POST was on its way counts after it", arguments: endings)
  func hopesWhileDraining(reason: State.Pause.Reason, endedBy: Set<State.Hope>) {
    for hope in State.Hope.allCases {
      var state = State.draining()
      #expect(state.handle(.hope(hope, tryAt: Self.now), now: Self.now) == .nothing)
      _ = state.handle(.failed(Self.pause(reason)), now: Self.now)
      #expect(state == Self.paused(reason, until: endedBy.contains(hope) ? 100 : 130), "\(hope)")
    }
  }

  @Test("a hope never makes a pause longer") func neverLonger() {
    var state = Self.paused(.failure)
    #expect(state.handle(.hope(.network, tryAt: .seconds(500)), now: Self.now) == .wait(until: .seconds(130)))
  }
}
