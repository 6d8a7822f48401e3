import PrismProtocol
import PrismStore
import Testing

@testable import PrismEngine

/// Tables: what happened, and what is to be done.
@Suite("Delivery, decision by decision")
struct DeliveryTableTests {
  typealias Table = DeliveryTable

  struct Story: CustomTestStringConvertible, Sendable {
    let testDescription: String
    var prepare: @Sendable (inout Delivery.Conditions) -> Void = { _ in }
    let steps: [(event: Delivery.Event, actions: [String])]
    let upload: UploadState
  }

  /// To where packet 1 is on its way, and 2 and 3 are built behind it.
  static let onItsWay: [(event: Delivery.Event, actions: [String])] = [
    (.upload(.wanted), ["recover"]),
    (.recovered([], lastAccepted: Table.id(0), sender: nil), ["look"]),
    (.looked(hasRows: true), ["commit claims 1 sender.meta"]),
    (.committed([Table.claimed(1)]), ["build 1"]),
    (.built([Table.built(1)]), ["post 1 after 0", "commit claims 16"]),
    (.committed([Table.claimed(2), Table.claimed(3)]), ["build 2 3"]),
    (.built([Table.built(2), Table.built(3)]), []),
  ]

  static let stories: [Story] = [
    Story(
      testDescription: "packet after packet, one commit for all that was accepted",
      steps: onItsWay + [
        (Table.accepts(1), ["accepted", "circuit succeeded", "post 2 after 1"]),
        (Table.accepts(2), ["accepted", "circuit succeeded", "post 3 after 2"]),
        (Table.accepts(3), ["accepted", "circuit succeeded", "commit delivered 1 delivered 2 delivered 3"]),
        (.committed([]), ["ended"]),
      ], upload: .idle),
    Story(
      testDescription: "an answer before the commit is done: the next packet is built beside the next claim",
      steps: Array(onItsWay.prefix(3)) + [
        (.committed([Table.claimed(1, metaBytes: 2_000_000)]), ["build 1"]),
        (.built([Table.built(1)]), ["post 1 after 0", "commit claims 1"]),
        (Table.accepts(1), ["accepted", "circuit succeeded"]),
        (.committed([Table.claimed(2, metaBytes: 2_000_000)]), ["build 2", "commit delivered 1 claims 1"]),
        (.built([Table.built(2)]), ["post 2 after 1"]),
      ], upload: .draining()),
    Story(
      testDescription: "nothing waits: nothing is written",
      steps: [
        (.upload(.wanted), ["recover"]), (.recovered([], lastAccepted: nil, sender: nil), ["look"]),
        (.looked(hasRows: false), ["ended"]),
      ], upload: .idle),
    Story(
      testDescription: "a failure keeps what may have left and releases what is behind it",
      steps: onItsWay + [
        (
          Table.answers(1, Table.unavailable),
          [
            "circuit failed", "remember", "log not delivered: status 503", "commit released 2 released 3",
          ]
        ),
        (.committed([]), ["ended"]),
      ], upload: .paused(.init(until: .microseconds(1_000_397_119), reason: .failure))),
    Story(
      testDescription: "without a connection nothing has left: all is released",
      steps: onItsWay + [
        (
          Table.answers(1, Table.lost, mayHaveLeft: false),
          [
            "circuit failed", "remember", "log not delivered: connect: scripted",
            "commit released 1 released 2 released 3",
          ]
        ),
        (.committed([]), ["ended"]),
      ], upload: .paused(.init(until: .microseconds(1_000_397_119), reason: .failure))),
    Story(
      testDescription: "a store that fails while a packet is on its way waits for the answer, and keeps it",
      steps: Array(onItsWay.dropLast(2)) + [
        (.storeFailed, []), (Table.accepts(1), ["accepted", "circuit succeeded", "ended"]),
      ], upload: .paused(.init(until: .seconds(1002), reason: .store))),
    Story(
      testDescription: "a split is committed before its halves are read",
      steps: onItsWay + [
        (Table.answers(1, Table.tooLarge), ["commit split 1"]), (.committed([]), ["read new"]),
      ], upload: .draining()),
    Story(
      testDescription: "an answer that may not be one is asked for again at once, on a new connection",
      steps: onItsWay + [
        (Table.answers(1, .unproven(status: 400)), ["read 1"]), (.read(Table.id(1), Table.claimed(1)), ["build 1"]),
        (.built([Table.built(1)]), ["post 1 after 0, new connection"]),
        (Table.answers(1, Table.unacceptable), ["commit split 1"]),
      ], upload: .draining()),
    Story(
      testDescription: "a request during the drain begins another one",
      steps: onItsWay + [
        (.upload(.wanted), []), (Table.accepts(1), ["accepted", "circuit succeeded", "post 2 after 1"]),
        (Table.accepts(2), ["accepted", "circuit succeeded", "post 3 after 2"]),
        (Table.accepts(3), ["accepted", "circuit succeeded", "commit delivered 1 delivered 2 delivered 3"]),
        (.committed([]), ["ended, again", "commit claims 16"]), (.committed([]), ["ended"]),
      ], upload: .idle),
    Story(
      testDescription: "a packet that the store does not have any more is passed over",
      steps: [
        (.upload(.wanted), ["recover"]),
        (
          .recovered(
            [1, 2].map { PacketInFlight(id: Table.id($0), itemCount: 2) }, lastAccepted: nil,
            sender: StreamIdentity(deviceID: "d")), ["read 1"]
        ),
        (.read(Table.id(1), nil), ["read 2"]), (.read(Table.id(2), Table.claimed(2)), ["build 2"]),
        (.built([Table.built(2)]), ["post 2", "commit claims 1"]),
      ], upload: .draining()),
    Story(
      testDescription: "what can't be built holds the namespace",
      steps: Array(onItsWay.prefix(4)) + [
        (
          .notBuilt([Table.id(1)], "frameOverflow"),
          [
            "circuit failed", "remember", "log not delivered: the packet can't be built: frameOverflow",
            "commit released 1",
          ]
        ),
        (.committed([]), ["ended"]),
      ], upload: .paused(.init(until: .microseconds(1_000_397_119), reason: .held))),
    Story(
      testDescription: "a stop waits for the packet on its way and leaves the rest",
      steps: onItsWay + [
        (.upload(.stop), []), (Table.accepts(1), ["accepted", "circuit succeeded", "commit delivered 1"]),
        (.committed([]), ["ended"]),
      ], upload: .stopped),
    Story(
      testDescription: "rows for unmetered networks only go back before another claim",
      prepare: { $0.isMetered = true },
      steps: Array(onItsWay.prefix(4)) + [
        (.built([Table.built(1, hasWifiOnlyRows: true)]), ["commit released 1 claims 16"]),
        (.committed([]), ["ended"]),
      ], upload: .idle),
    Story(
      testDescription: "pending notes are written at the end, though nothing else happened",
      prepare: { $0.hasNotes = true },
      steps: [
        (.upload(.wanted), ["recover"]),
        (.recovered([], lastAccepted: nil, sender: nil), ["commit claims 1 sender.meta"]),
        (.committed([]), ["commit"]),
      ], upload: .draining()),
  ]

  @Test("each event has its actions", arguments: stories)
  func story(_ story: Story) {
    var table = DeliveryTable()
    story.prepare(&table.conditions)
    for (index, step) in story.steps.enumerated() {
      #expect(table.after(step.event) == step.actions, "step \(index + 1)")
    }
    #expect(table.delivery.upload == story.upload)
  }

  @Test("a gate that shuts lets the packet on its way end, and no other begin")
  func shut() {
    var table = DeliveryTable()
    for step in Self.onItsWay { _ = table.after(step.event) }
    table.conditions.verdict = Table.shut
    #expect(table.after(Table.accepts(1)) == ["accepted", "circuit succeeded", "commit delivered 1"])
    #expect(table.after(.committed([])) == ["ended"])
    #expect(table.delivery.queue.entries.map(\.id) == [2, 3].map(Table.id), "they stay claimed, in their order")
    table.conditions.verdict = .open(.all)
    #expect(table.after(.upload(.wanted)) == ["read 2"])
  }

  @Test("a packet that was built under another key or network is built again")
  func stale() {
    var table = DeliveryTable()
    for step in Self.onItsWay { _ = table.after(step.event) }
    table.conditions.seal?.keyID = "other"
    #expect(table.after(Table.accepts(1)) == ["accepted", "circuit succeeded", "read 2"])
  }

  @Test("after a store that failed, what was decided is committed before it is asked what is in flight")
  func afterStoreFailure() {
    var table = DeliveryTable()
    for step in Self.onItsWay.dropLast(2) { _ = table.after(step.event) }
    _ = table.after(.storeFailed)
    _ = table.after(Table.accepts(1))
    table.conditions.instant = Instant(uptime: .seconds(1002), unixMilliseconds: 1_700_000_002_000)
    #expect(table.after(.upload(.wanted)) == ["commit delivered 1"])
    #expect(table.after(.committed([])) == ["recover"])
  }

  @Test("a receiver without a place for records holds records up, and no reports", arguments: [404, 405, 401])
  func missingRoute(status: Int) {
    var table = DeliveryTable()
    let answer = Table.answers(1, .misconfigured(status: status, code: nil, message: ""))
    for step in Self.onItsWay { _ = table.after(step.event) }
    #expect(table.after(answer).first == "circuit failed")
    table.delivery = Delivery(kind: .records)
    _ = table.after(.upload(.wanted))
    _ = table.after(.recovered([], lastAccepted: nil, sender: nil))
    _ = table.after(.looked(hasRows: true))
    _ = table.after(.committed([Table.claimed(1)]))
    _ = table.after(.built([Table.built(1)]))
    #expect(table.after(answer).first == (status == 401 ? "circuit failed" : "remember"))
    #expect(table.delivery.retry.failuresInRow == 1, "its own pauses grow")
  }

  @Test("while other clients wait for the store, a commit claims one packet")
  func neighbours() {
    var table = Table()
    table.conditions.shares.hasContention = true
    for step in Self.onItsWay.prefix(4) { #expect(table.after(step.event) == step.actions) }
    #expect(table.after(.built([Table.built(1)])) == ["post 1 after 0", "commit claims 1"])
  }

  @Test("another device claims once the last packet of the one before is settled")
  func otherDevice() {
    var table = DeliveryTable()
    for step in Self.onItsWay { _ = table.after(step.event) }
    table.conditions.seal?.deviceID = "other"
    #expect(table.after(Table.accepts(1)) == ["accepted", "circuit succeeded", "post 2 after 1"], "still of the first")
    _ = table.after(.upload(.wanted))
    _ = table.after(Table.accepts(2))
    _ = table.after(Table.accepts(3))
    #expect(table.after(.committed([])) == ["ended, again", "look"])
    #expect(table.after(.looked(hasRows: true)) == ["commit claims 16 sender.meta"])
    _ = table.after(.committed([Table.claimed(4)]))
    var built = Table.built(4)
    built.seal.deviceID = "other"
    #expect(table.after(.built([built])) == ["post 4"], "its chain begins")
  }
}
