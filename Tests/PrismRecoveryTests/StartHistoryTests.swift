import Testing

@testable import PrismRecovery

@Suite struct StartHistoryTests {
  enum Step: Sendable {
    /// A start that dies this many seconds after the event before it, in this boot.
    case dies(after: Int64, boot: String)
    case stops
    case serves
    case ends
  }

  private static func dies(_ count: Int, after: Int64 = 5, boot: String = "a") -> [Step] {
    Array(repeating: .dies(after: after, boot: boot), count: count)
  }

  static let cases: [(name: String, steps: [Step], deaths: Int, aside: StartHistory.Reading?)] = [
    ("the first start", [], 0, nil),
    ("two deaths", dies(2), 2, nil),
    ("three deaths", dies(3), 3, .everything),
    ("the start without it died, too", dies(4), 4, nil),
    ("six deaths with it, one without", dies(7), 7, .everything),
    ("eight", dies(8), 8, nil),
    ("eleven", dies(11), 11, .counts),
    ("fifteen", dies(15), 15, .nothing),
    ("for ever", dies(400), 16, nil),
    ("three deaths in another boot", dies(3, boot: "b"), 0, nil),
    ("two in another boot, one in this", dies(2, boot: "b") + dies(1), 1, nil),
    ("a loss of power between deaths", dies(2) + dies(1, boot: "b") + dies(1), 1, nil),
    ("no boot id", dies(3, boot: ""), 0, nil),
    ("deaths a minute apart", dies(3, after: 60), 3, .everything),
    ("deaths further apart", dies(3, after: 61), 0, nil),
    ("starts that were stopped", [.stops, .stops, .stops], 0, nil),
    ("deaths with a stopped start between", dies(2) + [.stops] + dies(1), 3, .everything),
    ("it served between", dies(2) + [.serves] + dies(1), 1, nil),
    ("killed while it served", dies(3) + [.serves], 0, nil),
    ("ended in order", dies(3) + [.ends], 0, nil),
  ]

  @Test("only deaths in a row, of this boot, count; each guess is taken back by the next death", arguments: cases)
  func attempts(_ row: (name: String, steps: [Step], deaths: Int, aside: StartHistory.Reading?)) {
    var (now, text): (Int64, String?) = (1_700_000_000_000, nil)
    func begin(_ boot: String) -> (StartHistory, StartHistory.Start) {
      var history = text.map { StartHistory($0) } ?? StartHistory()
      let start = history.begin(bootID: boot, unixMilliseconds: now)
      return (history, start)
    }
    for step in row.steps {
      if case .dies(let after, let boot) = step {
        text = begin(boot).0.text
        now += after * 1000
        continue
      }
      var (history, _) = begin("a")
      switch step {
      case .stops: history.stop()
      case .serves: history.becomeReady()
      case .dies, .ends: break
      }
      if case .ends = step { text = nil } else { text = history.text }
    }
    let boot = row.name == "no boot id" ? "" : "a"
    let start = begin(boot).1
    #expect(start.deaths == row.deaths && start.aside == row.aside, "\(row.name): \(start)")
    #expect(start.wasClean == (text == nil))
  }

  @Test("the log may end in a torn commit until a start of this boot has looked at it")
  func log() {
    var history = StartHistory()
    _ = history.begin(bootID: "a", unixMilliseconds: 0)
    history.logIsWhole()
    history.becomeReady()
    var afterPowerLoss = StartHistory(history.text)
    #expect(!afterPowerLoss.begin(bootID: "b", unixMilliseconds: 1).isSameBoot)
    var afterDeath = StartHistory(afterPowerLoss.text)
    #expect(!afterDeath.begin(bootID: "b", unixMilliseconds: 2).isSameBoot)
    afterDeath.logIsWhole()
    var afterAnother = StartHistory(afterDeath.text)
    #expect(afterAnother.begin(bootID: "b", unixMilliseconds: 3).isSameBoot)
  }

  @Test("what version 0.1 wrote is read")
  func oldFormat() {
    var history = StartHistory("a\nstart 1000\nstart 2000\nstart 3000\n")
    let start = history.begin(bootID: "a", unixMilliseconds: 4000)
    #expect(!start.wasClean && start.isSameBoot && start.hasOpened && start.deaths == 3)
    var ready = StartHistory("a\nready\n")
    #expect(ready.begin(bootID: "a", unixMilliseconds: 1).deaths == 0)
  }

  @Test(
    "what the collector of version 0.2 wrote is read, and an end in order is known after a start that died",
    arguments: [
      ("clean\n", true, false), ("running a\n", false, true), ("running b\n", false, false),
      ("running\n", false, false),
    ])
  func collectorFormat(mark: String, wasClean: Bool, isSameBoot: Bool) {
    var history = StartHistory(mark)
    let start = history.begin(bootID: "a", unixMilliseconds: 0)
    #expect(start.hasOpened && start.wasClean == wasClean && start.isSameBoot == isSameBoot && start.deaths == 0)
    var afterDeath = StartHistory(history.text)
    let next = afterDeath.begin(bootID: "a", unixMilliseconds: 1)
    #expect(next.hasOpened && !next.wasClean && next.isSameBoot == isSameBoot && next.deaths == 1)
  }
}
