import PrismConfig
import PrismProtocol
import Testing

@testable import PrismEngine

@Suite("Probation of remote configuration")
struct ProbationTests {
  private static let shop = NamespaceName("shop")!

  private static func entry(_ maxItem: Int) -> RemoteNamespace {
    RemoteNamespace(name: shop, keys: [.init("maxItem", .int(maxItem))])
  }

  /// A state that walks through time.
  private struct Walk {
    var state = RemoteState()
    var uptime: Duration = .seconds(1000)

    @discardableResult
    mutating func handle(_ event: RemoteState.Event) -> RemoteState.Action {
      state.handle(event, now: Instant(uptime: uptime, unixMilliseconds: 1), random: 0)
    }

    /// - Parameter changed: the namespace is configured otherwise by it, and had packets accepted.
    mutating func offer(_ entries: [RemoteNamespace], _ time: Int64, changed: Bool = true) {
      handle(.configured(DaemonConfiguration.Remote(url: "https://h", allow: [])))
      if case .resting(let until, _) = state.phase {
        uptime = max(uptime, until)
        handle(.due)
      }
      let document = RemoteDocument(namespaces: entries, updateTime: time, isFull: false)
      if case .apply = handle(.answered(document)) { handle(.applied(changed: changed ? [shop] : [])) }
    }

    /// Samples every 10 s, and lets what is to be taken back be applied. - Returns: whether something was.
    mutating func tries(_ duration: Duration, proven: Bool = false, trying: Bool = true) -> Bool {
      let end = uptime + duration
      while uptime < end {
        uptime += .seconds(10)
        if case .apply = handle(.sampled([shop: .init(isProven: proven, isTrying: trying)])) {
          handle(.applied(changed: [shop]))
          return true
        }
      }
      return false
    }
  }

  @Test("what gets no packet accepted in 10 minutes of trying is taken back, and stays so until the server changes it")
  func takenBack() {
    var walk = Walk()
    walk.offer([Self.entry(1)], 7, changed: false)
    walk.offer([Self.entry(2)], 8)
    #expect(walk.state.layer.trials[Self.shop]?.previous == Self.entry(1))
    #expect(walk.tries(.seconds(590)) == false)
    #expect(walk.tries(.seconds(10)) == true)
    #expect(walk.state.layer.entries == [Self.shop: Self.entry(1)])
    #expect(walk.state.layer.trials.isEmpty)
    #expect(walk.state.lastFailed?.number == 8)
    #expect(
      walk.state.lastFailed?.reason == "shop: no packet was accepted for 10 min; its previous one is taken back")
    walk.offer([], 8)
    #expect(walk.state.lastFailed != nil, "as long as it is taken back, the server gets the reason")
    walk.offer([Self.entry(2)], 9)
    #expect(walk.state.layer.entries == [Self.shop: Self.entry(1)], "the same again is not tried again")
    walk.offer([Self.entry(3)], 10)
    #expect(walk.state.layer.entries == [Self.shop: Self.entry(3)])
    #expect(walk.state.lastFailed == nil)
    #expect(walk.state.layer.trials[Self.shop]?.previous == Self.entry(1))
  }

  @Test("one accepted packet ends it")
  func proven() {
    var walk = Walk()
    walk.offer([Self.entry(2)], 8)
    #expect(walk.tries(.seconds(500)) == false)
    #expect(walk.tries(.seconds(10), proven: true) == false)
    #expect(walk.state.layer.trials.isEmpty)
    #expect(walk.tries(.seconds(3600)) == false)
    #expect(walk.state.layer.entries == [Self.shop: Self.entry(2)])
  }

  @Test("time in which it doesn't try does not count: no rows, no network, or a machine that slept")
  func idle() {
    var walk = Walk()
    walk.offer([Self.entry(2)], 8)
    #expect(walk.tries(.seconds(400)) == false)
    #expect(walk.tries(.seconds(7200), trying: false) == false)
    walk.uptime += .seconds(86_400)
    #expect(walk.tries(.seconds(10)) == false)
    #expect(walk.state.layer.trials[Self.shop]?.tried == .seconds(420))
    #expect(walk.tries(.seconds(180)) == true)
  }

  @Test("a change on top of an unproven one takes back to the last that had proved itself")
  func twice() {
    var walk = Walk()
    walk.offer([Self.entry(1)], 7, changed: false)
    walk.offer([Self.entry(2)], 8)
    #expect(walk.tries(.seconds(300)) == false)
    walk.offer([Self.entry(3)], 9)
    #expect(walk.state.layer.trials[Self.shop] == .init(previous: Self.entry(1)))
    walk.offer([Self.entry(1)], 10)
    #expect(walk.state.layer.trials.isEmpty, "that is what had proved itself")
  }

  @Test("a namespace whose remote part is removed gets it back")
  func removed() {
    var walk = Walk()
    walk.offer([Self.entry(1)], 7, changed: false)
    walk.offer([RemoteNamespace(name: Self.shop, isRemoved: true, keys: [])], 8)
    #expect(walk.state.layer.entries.isEmpty)
    #expect(walk.tries(.seconds(600)) == true)
    #expect(walk.state.layer.entries == [Self.shop: Self.entry(1)])
  }

  @Test("what was before and isn't sound any more is not taken back, and that is said")
  func unsound() {
    var walk = Walk()
    walk.offer([Self.entry(1)], 7, changed: false)
    walk.offer([Self.entry(2)], 8)
    while walk.state.phase != .off {
      walk.uptime += .seconds(10)
      if case .apply = walk.handle(.sampled([Self.shop: .init(isProven: false, isTrying: true)])) { break }
    }
    walk.handle(.notApplied(reason: "remote: shop.maxItem: is 1"))
    #expect(walk.state.layer.entries == [Self.shop: Self.entry(2)])
    #expect(walk.state.layer.trials.isEmpty)
    #expect(walk.state.lastFailed?.reason == "what was before can't be taken back: remote: shop.maxItem: is 1")
  }

  @Test("is nothing to wake for once all has stopped")
  func stopped() {
    var walk = Walk()
    walk.offer([Self.entry(1)], 7)
    #expect(walk.state.sampleDue != nil)
    walk.handle(.stop)
    #expect(walk.state.due == nil)
  }

  @Test("goes on after a restart where it was, to the minute")
  func restart() throws {
    var walk = Walk()
    walk.offer([Self.entry(1)], 7, changed: false)
    walk.offer([Self.entry(2)], 8)
    #expect(walk.tries(.seconds(330)) == false)
    let record = try #require(walk.state.record)
    let read = try RemoteRecord(bytes: try record.bytes())
    #expect(read == record)
    walk.state = RemoteState(read, source: DaemonConfiguration.Remote(url: "https://h", allow: []))
    walk.offer([], 8)
    #expect(walk.state.layer.trials[Self.shop] == .init(previous: Self.entry(1), tried: .seconds(300)))
    #expect(walk.tries(.seconds(290)) == false)
    #expect(walk.tries(.seconds(20)) == true)
  }
}
