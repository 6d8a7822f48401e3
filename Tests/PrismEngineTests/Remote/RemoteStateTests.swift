import PrismConfig
import PrismProtocol
import Testing

@testable import PrismEngine

@Suite("Remote configuration's state")
struct RemoteStateTests {
  private static let shop = NamespaceName("shop")!
  private static let noon = Instant(uptime: .seconds(1000), unixMilliseconds: 5_000_000)

  private static func source(url: String = "https://h", key: [UInt8]? = nil) -> DaemonConfiguration.Remote {
    var source = DaemonConfiguration.Remote(url: url, allow: ["maxItem"])
    source.publicKey = key
    return source
  }

  private static func entry(_ name: String = "shop", maxItem: Int = 1, isRemoved: Bool = false) -> RemoteNamespace {
    RemoteNamespace(
      name: NamespaceName(name)!, isRemoved: isRemoved, keys: isRemoved ? [] : [.init("maxItem", .int(maxItem))])
  }

  private static func document(
    _ entries: [RemoteNamespace], _ time: Int64, full: Bool = false, version: Int64? = nil, since: Int64? = nil,
    issued: Int64? = nil, expires: Int64? = 6_000_000, store: String? = nil
  ) -> RemoteDocument {
    var document = RemoteDocument(
      namespaces: entries, updateTime: time, isFull: full, version: version, since: since, issueTime: issued,
      expireTime: expires)
    document.store = store
    return document
  }

  /// The first question asks for everything.
  private static func asking(key: [UInt8]? = nil) -> RemoteState {
    var state = RemoteState()
    #expect(state.handle(.configured(source(key: key)), now: noon, random: 0) == .ask(since: nil))
    return state
  }

  /// `document` is in force, and the next question is far.
  private static func resting(_ document: RemoteDocument, key: [UInt8]? = nil) -> RemoteState {
    var state = asking(key: key)
    settle(&state, document)
    #expect(state.due == noon.uptime + .seconds(540))
    return state
  }

  /// Answers, and takes what is to be applied as applied.
  private static func settle(
    _ state: inout RemoteState, _ document: RemoteDocument, changed: Set<NamespaceName> = []
  ) {
    if case .apply = state.handle(.answered(document), now: noon, random: 0) {
      #expect(state.handle(.applied(changed: changed), now: noon, random: 0) == .nothing)
    }
  }

  private static func ask(_ state: inout RemoteState) -> RemoteState.Action {
    state.handle(.due, now: Instant(uptime: state.due ?? .zero, unixMilliseconds: 0), random: 0)
  }

  @Test("asks for everything at first, then for what changed since", arguments: [true, false])
  func asks(full: Bool) {
    var state = Self.resting(Self.document([Self.entry()], 7, full: full))
    #expect(state.layer.offered == [Self.shop: Self.entry()])
    #expect(Self.ask(&state) == .ask(since: 7))
    Self.settle(&state, Self.document([Self.entry("pay")], 8, since: 7))
    #expect(state.layer.offered.count == 2)
    #expect(Self.ask(&state) == .ask(since: 8))
    Self.settle(&state, Self.document([Self.entry(isRemoved: true)], 9))
    #expect(state.layer.offered.keys.map(\.text) == ["pay"])
    #expect(state.lastApplied?.number == 9)
  }

  @Test("asks every interval ± 10 %", arguments: [(0, 540), (UInt64.max, 660)])
  func interval(random: UInt64, seconds: Int) {
    var state = Self.asking()
    // `share` takes the remainder of what there is to share.
    let most = random == 0 ? 0 : UInt64(120_000_000)
    _ = state.handle(.answered(Self.document([], 1)), now: Self.noon, random: most)
    #expect(state.due == Self.noon.uptime + .seconds(seconds))
  }

  @Test("too many changes, or `full`, are asked for once more as a whole, and replace the lot")
  func whole() {
    let many = (0...1000).map { Self.entry("n\($0)") }
    for answer in [Self.document(many, 8), Self.document([], 8, full: true)] {
      var state = Self.resting(Self.document([Self.entry()], 7))
      #expect(Self.ask(&state) == .ask(since: 7))
      #expect(state.handle(.answered(answer), now: Self.noon, random: 0) == .ask(since: nil))
      Self.settle(&state, Self.document(many, 8))
      #expect(state.layer.offered.count == 1001)
      #expect(state.layer.offered[Self.shop] == nil)
    }
    var state = Self.resting(Self.document([Self.entry()], 7))
    _ = Self.ask(&state)
    Self.settle(&state, Self.document(Array(many.dropLast()), 8))
    #expect(state.layer.offered.count == 1001, "a thousand changes are changes yet")
  }

  @Test(
    "a whole answer takes away what it does not name only if it is of the store that gave the count",
    arguments: [("A", "A", true), (nil, nil, true), ("A", "B", false), ("A", nil, false), (nil, "B", false)]
      as [(String?, String?, Bool)])
  func otherStore(known: String?, answering: String?, takesAway: Bool) throws {
    let first = Self.resting(Self.document([Self.entry(), Self.entry("till")], 7, store: known))
    var state = RemoteState(try RemoteRecord(bytes: try #require(first.record).bytes()), source: Self.source())
    #expect(state.handle(.configured(Self.source()), now: Self.noon, random: 0) == .ask(since: 7))
    let again = Self.document([], 9, full: true, store: answering)
    #expect(state.handle(.answered(again), now: Self.noon, random: 0) == .ask(since: nil))
    let entries = [Self.entry("till", isRemoved: true), Self.entry("test")]
    Self.settle(&state, Self.document(entries, 9, full: true, store: answering))
    #expect(state.layer.offered.keys.map(\.text).sorted() == (takesAway ? ["test"] : ["shop", "test"]))
    #expect(state.layer.updateTime == 9 && state.layer.store == answering)
  }

  @Test(
    "changes that another store counted are not taken: everything is asked for",
    arguments: [("A", "A", false), ("A", "B", true), (nil, "B", false), ("A", nil, false)]
      as [(String?, String?, Bool)])
  func otherCount(known: String?, answering: String?, asks: Bool) {
    var state = Self.resting(Self.document([Self.entry()], 7, store: known))
    #expect(Self.ask(&state) == .ask(since: 7))
    let changes = Self.document([Self.entry("pay")], 8, store: answering)
    let isAsked = state.handle(.answered(changes), now: Self.noon, random: 0) == .ask(since: nil)
    #expect(isAsked == asks)
  }

  @Test("a failure is followed by growing pauses, and by no pause once it is over")
  func backoff() {
    var state = Self.asking()
    for seconds in [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300] {
      // The largest share of the pause that is possible.
      let random = UInt64(seconds) * 1_000_000
      let failed = RemoteState.Event.failed(cause: "connect", isConfiguration: false, retryAfter: nil)
      #expect(state.handle(failed, now: Self.noon, random: random) == .nothing)
      #expect(state.due == Self.noon.uptime + .seconds(seconds))
      #expect(state.cause == "connect")
      #expect(Self.ask(&state) == .ask(since: nil))
    }
    Self.settle(&state, Self.document([], 1))
    #expect(state.failuresInRow == 0 && state.cause == nil)
  }

  @Test("the server's Retry-After is waited for; the network's return is no reason to wait longer")
  func pauses() {
    var state = Self.asking()
    let failed = RemoteState.Event.failed(cause: "503", isConfiguration: false, retryAfter: .seconds(40))
    _ = state.handle(failed, now: Self.noon, random: 0)
    #expect(state.due == Self.noon.uptime + .seconds(40))
    _ = state.handle(.network(tryAt: Self.noon.uptime + .seconds(2)), now: Self.noon, random: 0)
    #expect(state.due == Self.noon.uptime + .seconds(2))
    _ = state.handle(.network(tryAt: Self.noon.uptime + .seconds(9)), now: Self.noon, random: 0)
    #expect(state.due == Self.noon.uptime + .seconds(2))
  }

  @Test("a newer version that a packet's answer names is asked for at once, and once only")
  func announcements() {
    var state = Self.resting(Self.document([], 7))
    func announce(_ version: Int64) -> RemoteState.Action {
      state.handle(.announced(version), now: Self.noon, random: 0)
    }
    #expect(announce(6) == .nothing && announce(7) == .nothing)
    #expect(announce(8) == .ask(since: 7))
    #expect(announce(9) == .nothing, "a question is on its way")
    // The answer is older than what was named meanwhile.
    #expect(state.handle(.answered(Self.document([], 8)), now: Self.noon, random: 0) == .ask(since: 8))
    Self.settle(&state, Self.document([], 8))
    #expect(announce(9) == .nothing, "it was asked for and didn't come")
    #expect(announce(10) == .ask(since: 8))
    _ = state.handle(.failed(cause: "", isConfiguration: false, retryAfter: nil), now: Self.noon, random: 1)
    #expect(announce(11) == .nothing, "the server is left alone")
  }

  @Test("what is refused is kept with its number and reason, what was before stays, and a later one clears it")
  func refusals() {
    var state = Self.resting(Self.document([Self.entry()], 7))
    let before = state.layer
    _ = Self.ask(&state)
    let action = state.handle(.answered(Self.document([Self.entry(maxItem: 9)], 8)), now: Self.noon, random: 0)
    guard case .apply(let layer) = action else {
      Issue.record("not applied: \(action)")
      return
    }
    #expect(layer.entries[Self.shop] == Self.entry(maxItem: 9))
    _ = state.handle(.notApplied(reason: "remote: shop.maxItem: …"), now: Self.noon, random: 0)
    #expect(state.layer == before)
    #expect(state.lastFailed == .init(number: 8, reason: "remote: shop.maxItem: …", unixMilliseconds: 5_000_000))
    #expect(state.lastApplied?.number == 7)
    #expect(Self.ask(&state) == .ask(since: 7))
    _ = state.handle(.unreadable(reason: "no gzip"), now: Self.noon, random: 0)
    #expect(state.lastFailed?.number == nil && state.lastFailed?.reason == "no gzip")
    #expect(state.layer == before)
    _ = Self.ask(&state)
    Self.settle(&state, Self.document([], 9))
    #expect(state.lastFailed == nil)
  }

  @Test(
    "with a public key, versions only rise, by a bounded step, and no answer is taken after its time",
    arguments: [
      (
        document([entry(maxItem: 2)], 8, version: nil),
        "version: is missing; with remote.publicKey every answer needs one"
      ),
      (document([entry(maxItem: 2)], 8, version: 4), "version: is 4, older than 5, which was taken already"),
      (
        document([entry(maxItem: 2)], 8, version: 5),
        "version: is 5 as before, but what it says is not; a change needs a higher one"
      ),
      (document([entry()], 8, version: 5), nil), (document([entry(maxItem: 2)], 8, version: 6), nil),
      (document([entry(maxItem: 2)], 8, version: 6, since: 3), "since: is 3, but what changed since 7 was asked for"),
      (document([entry(maxItem: 2)], 8, version: 1_000_005), nil),
      (
        document([entry(maxItem: 2)], 8, version: 1_000_006),
        "version: is 1000006, more than 1000000 ahead of 5, which was taken last"
      ),
      (
        document([entry(maxItem: 2)], 8, version: .max),
        "version: is 9223372036854775807, more than 1000000 ahead of 5, which was taken last"
      ),
      (
        document([entry(maxItem: 2)], 8, version: 6, expires: nil),
        "expireTime: is missing; with remote.publicKey every answer needs one"
      ),
      (
        document([entry(maxItem: 2)], 8, version: 6, expires: 5_000_000),
        "expireTime: is 1970-01-01T01:23:20.000Z, and it is 1970-01-01T01:23:20.000Z here; "
          + "an old answer is played back, or a clock is wrong"
      ),
      (document([entry(maxItem: 2)], 8, version: 6, expires: 5_000_001), nil),
    ])
  func versions(document: RemoteDocument, refusal: String?) {
    var state = Self.resting(Self.document([Self.entry()], 7, version: 5), key: [1])
    _ = Self.ask(&state)
    Self.settle(&state, document)
    #expect(state.lastFailed?.reason == refusal)
    #expect(state.layer.offered[Self.shop] == (refusal == nil ? document.namespaces[0] : Self.entry()))
  }

  /// At `unixMilliseconds`, answers the question for what changed. - Returns: the reason of a refusal.
  private static func answer(
    _ state: inout RemoteState, _ document: RemoteDocument, at unixMilliseconds: Int64
  ) -> String? {
    let now = Instant(uptime: state.due ?? .zero, unixMilliseconds: unixMilliseconds)
    _ = state.handle(.due, now: now, random: 0)
    if case .apply = state.handle(.answered(document), now: now, random: 0) {
      _ = state.handle(.applied(changed: []), now: now, random: 0)
    }
    return state.lastFailed?.reason
  }

  @Test("a clock that is set back makes no expired answer valid, over a restart neither")
  func clockBack() throws {
    let old = Self.document([Self.entry(maxItem: 2)], 8, version: 6, issued: 4_000_000, expires: 5_100_000)
    var state = Self.resting(Self.document([Self.entry()], 7, version: 5, issued: 5_000_000), key: [1])
    #expect(Self.answer(&state, old, at: 0) == nil, "it is valid at the time that is known to have been")
    state = Self.resting(Self.document([Self.entry()], 7, version: 5, issued: 5_000_000), key: [1])
    let newer = Self.document([Self.entry()], 8, version: 5, issued: 5_500_000)
    #expect(Self.answer(&state, newer, at: 5_600_000) == nil)
    #expect(Self.answer(&state, old, at: 0)?.hasPrefix("expireTime: is 1970-01-01T01:25:00.000Z, and it is") == true)
    var next = RemoteState(try #require(state.record), source: Self.source(key: [1]))
    _ = next.handle(.configured(Self.source(key: [1])), now: Self.noon, random: 0)
    #expect(Self.answer(&next, old, at: 0)?.hasPrefix("expireTime: ") == true)
  }

  @Test("a clock that was far ahead, here or at the signer, refuses what comes meanwhile and nothing for ever")
  func clockAhead() {
    let year: Int64 = 31_536_000_000
    var state = Self.resting(Self.document([Self.entry()], 7, version: 5, issued: 5_000_000), key: [1])
    let good = Self.document([Self.entry(maxItem: 2)], 8, version: 6, issued: 5_000_000)
    #expect(Self.answer(&state, good, at: 70 * year)?.hasPrefix("expireTime: ") == true)
    #expect(state.layer.offered[Self.shop] == Self.entry(), "what is in force stays")
    #expect(Self.answer(&state, good, at: 5_100_000) == nil)
    let ahead = Self.document([Self.entry(maxItem: 3)], 9, version: 7, issued: 70 * year, expires: 71 * year)
    #expect(Self.answer(&state, ahead, at: 5_200_000) == nil)
    #expect(Self.answer(&state, Self.document([Self.entry(maxItem: 4)], 10, version: 8), at: 5_300_000) == nil)
  }

  @Test("versions are held to over a restart, and forgotten with their key")
  func versionsRestart() throws {
    let state = Self.resting(Self.document([Self.entry()], 7, version: 5), key: [1])
    let record = try #require(state.record)
    for (key, isRefused) in [([UInt8(1)], true), ([2], false)] {
      var next = RemoteState(record, source: Self.source(key: key))
      #expect(next.layer.entries == state.layer.entries, "what held goes on holding")
      let since: Int64? = isRefused ? 7 : nil
      #expect(next.handle(.configured(Self.source(key: key)), now: Self.noon, random: 0) == .ask(since: since))
      Self.settle(&next, Self.document([Self.entry(maxItem: 3)], 8, version: 4))
      #expect((next.lastFailed != nil) == isRefused)
    }
  }

  @Test("another server is asked for everything, and its answer alone replaces what the first one said")
  func otherServer() {
    var state = Self.resting(Self.document([Self.entry()], 7))
    #expect(state.handle(.configured(Self.source(url: "https://i")), now: Self.noon, random: 0) == .ask(since: nil))
    #expect(state.layer.offered.count == 1)
    Self.settle(&state, Self.document([Self.entry("pay")], 1))
    #expect(state.layer.offered.keys.map(\.text) == ["pay"])
  }

  @Test("what another server said and was not put in force yet is not put in force any more")
  func otherServerMeanwhile() {
    var state = Self.asking()
    guard case .apply = state.handle(.answered(Self.document([Self.entry()], 7)), now: Self.noon, random: 0) else {
      Issue.record("not applied")
      return
    }
    #expect(state.handle(.configured(Self.source()), now: Self.noon, random: 0) == .nothing)
    #expect(state.handle(.configured(Self.source(url: "https://i")), now: Self.noon, random: 0) == .ask(since: nil))
    #expect(state.handle(.applied(changed: []), now: Self.noon, random: 0) == .nothing)
    #expect(state.layer == RemoteLayer())
  }

  @Test("a reload without a change asks nothing, unless something was wrong")
  func reload() {
    var state = Self.resting(Self.document([], 7))
    #expect(state.handle(.configured(Self.source()), now: Self.noon, random: 0) == .nothing)
    _ = Self.ask(&state)
    _ = state.handle(.unreadable(reason: "x"), now: Self.noon, random: 0)
    #expect(state.handle(.configured(Self.source()), now: Self.noon, random: 0) == .ask(since: 7))
  }

  @Test("turned off, it says nothing more; turned on again, it asks for everything")
  func off() {
    var state = Self.resting(Self.document([Self.entry()], 7))
    _ = Self.ask(&state)
    #expect(state.handle(.configured(nil), now: Self.noon, random: 0) == .giveUp)
    #expect(state.handle(.answered(Self.document([], 8)), now: Self.noon, random: 0) == .nothing)
    #expect(state.due == nil && state.layer == RemoteLayer() && state.record == nil)
    #expect(state.handle(.configured(Self.source()), now: Self.noon, random: 0) == .ask(since: nil))
  }

  @Test("nothing is done once it has stopped")
  func stopped() {
    var state = Self.asking()
    #expect(state.handle(.stop, now: Self.noon, random: 0) == .giveUp)
    let events: [RemoteState.Event] = [
      .configured(Self.source()), .due, .announced(1), .answered(Self.document([], 1)), .unreadable(reason: ""),
      .applied(changed: []), .notApplied(reason: ""), .dropped(reason: ""), .sampled([:]), .stop,
      .network(tryAt: .zero), .failed(cause: "", isConfiguration: true, retryAfter: nil),
    ]
    for event in events { #expect(state.handle(event, now: Self.noon, random: 0) == .nothing) }
    #expect(state.due == nil)
  }
}
