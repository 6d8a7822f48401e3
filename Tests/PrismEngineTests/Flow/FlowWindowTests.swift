import Testing

@testable import PrismEngine

@Suite("The metered window")
struct FlowWindowTests {
  static let wall: Int64 = 1_700_000_000_000
  static let day: Int64 = 86_400_000

  private func at(_ hours: Int, wallStep: Int64 = 0) -> Instant {
    Instant(uptime: .seconds(hours * 3600), unixMilliseconds: Self.wall + Int64(hours) * 3_600_000 + wallStep)
  }

  @Test("bytes are counted until 24 h have gone by, then again from 0") func rolls() {
    var window = FlowWindow(now: at(0))
    window.book(700)
    window.book(300)
    window.roll(at(23))
    #expect(window.usedBytes == 1000 && window.remaining(at(23)) == .seconds(3600))
    window.roll(at(24))
    #expect(window.usedBytes == 0 && window.remaining(at(24)) == .seconds(86_400))
  }

  @Test("what was booked too much is given back, and never more than there is") func gives() {
    var window = FlowWindow(now: at(0))
    window.book(100)
    window.book(-40)
    #expect(window.usedBytes == 60)
    window.book(-100)
    #expect(window.usedBytes == 0)
  }

  @Test(
    "while it runs no step of the wall clock makes it longer or shorter",
    arguments: [
      -10 * 365 * day, -day, -1, 1, day, 10 * 365 * day,
    ])
  func steps(step: Int64) {
    var window = FlowWindow(now: at(0))
    window.book(1)
    #expect(window.remaining(at(6, wallStep: step)) == .seconds(18 * 3600))
    window.roll(at(23, wallStep: step))
    #expect(window.usedBytes == 1)
    window.roll(at(24, wallStep: step))
    #expect(window.usedBytes == 0)
  }

  /// The daemon stops after 6 h; uptime begins at 0 again, as after a boot.
  private func restarted(wallMillisecondsLater: Int64) throws -> (FlowWindow, Instant) {
    var window = FlowWindow(now: at(0))
    window.book(500)
    let note = window.note(now: at(6), bootID: "before")
    let start = Instant(uptime: .seconds(5), unixMilliseconds: at(6).unixMilliseconds + wallMillisecondsLater)
    return (try #require(FlowWindow(note: note, now: start)), start)
  }

  @Test(
    "over a restart it goes on where the wall clock says",
    arguments: [
      (Int64(0), 18), (3_600_000, 17), (18 * 3_600_000, 0), (10 * 365 * day, 0),
    ] as [(Int64, Int)])
  func restart(later: Int64, hoursLeft: Int) throws {
    var (window, start) = try restarted(wallMillisecondsLater: later)
    #expect(window.usedBytes == 500 && window.remaining(start) == .seconds(hoursLeft * 3600))
    window.roll(start)
    #expect(window.usedBytes == (hoursLeft == 0 ? 0 : 500))
  }

  @Test(
    "over a restart of the daemon alone no clock makes a new window or a longer one",
    arguments: [0, 365, -365, 20_000, -20_000] as [Int64])
  func restartInBoot(daysStepped: Int64) throws {
    var window = FlowWindow(now: at(0))
    window.book(500)
    for (hour, next) in [(6, 7), (7, 20), (20, 23)] {
      let note = window.note(
        now: Instant(uptime: at(hour).uptime, unixMilliseconds: at(hour).unixMilliseconds), bootID: "b")
      let start = Instant(
        uptime: at(next).uptime, unixMilliseconds: at(next).unixMilliseconds + daysStepped * Self.day)
      window = try #require(FlowWindow(note: note, now: start, bootID: "b"))
      #expect(window.remaining(start) == .seconds((24 - next) * 3600))
      window.roll(start)
      #expect(window.usedBytes == 500)
    }
    window.roll(Instant(uptime: at(24).uptime, unixMilliseconds: 0))
    #expect(window.usedBytes == 0)
  }

  @Test("a clock that is behind after a restart: 24 h of uptime at most, less once it is set right")
  func behind() throws {
    var (window, start) = try restarted(wallMillisecondsLater: -365 * Self.day)
    #expect(window.remaining(start) == .seconds(86_400))
    let later = Instant(uptime: start.uptime + .seconds(3600), unixMilliseconds: at(8).unixMilliseconds)
    #expect(window.remaining(later) == .seconds(16 * 3600), "the clock was set: the window began 8 h ago")
    window.roll(Instant(uptime: start.uptime + .seconds(86_400), unixMilliseconds: 0))
    #expect(window.usedBytes == 0, "it never was")
  }

  @Test("a clock that stays behind over many restarts still lets the window's begin stand") func manyRestarts() throws {
    var (window, start) = try restarted(wallMillisecondsLater: -365 * Self.day)
    for boot in 0..<5 {
      window = try #require(FlowWindow(note: window.note(now: start, bootID: "\(boot)"), now: start))
    }
    let right = Instant(uptime: start.uptime, unixMilliseconds: at(12).unixMilliseconds)
    #expect(window.usedBytes == 500 && window.remaining(right) == .seconds(12 * 3600))
  }

  @Test(
    "a damaged note is ignored",
    arguments: [
      "", "x", "[]", "{}", #"{"usedBytes":5}"#, #"{"usedBytes":-5,"startedUnixMs":1}"#,
      #"{"usedBytes":1.5,"startedUnixMs":1}"#,
    ])
  func damaged(note: String) { #expect(FlowWindow(note: Array(note.utf8), now: at(0)) == nil) }

  @Test("a note with a time beyond all reason ends within 24 h of uptime", arguments: [Int64.min, Int64.max])
  func unreasonable(started: Int64) throws {
    let note = #"{"usedBytes":5,"startedUnixMs":\#(started)}"#
    let window = try #require(FlowWindow(note: Array(note.utf8), now: at(0)))
    #expect((Duration.zero...FlowWindow.length).contains(window.remaining(at(0))))
    #expect(window.remaining(at(24)) == .zero)
  }
}
