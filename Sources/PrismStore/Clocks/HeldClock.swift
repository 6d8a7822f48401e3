import PrismBase

/// The time that passed while the store held its rows, by which they grow old (docs/store.md, "Age").
///
/// It begins with the wall clock when the database is made, and then follows the uptime of each boot. No step of a clock
/// moves it, and time without power is not counted. Marks say how far the sequence of rows was at some times, so that no
/// row needs a time of its own. A row counts as held since the first mark behind it: never too early, and an hour too late
/// at most. A kill loses the last ten minutes while rows come, else the last hour.
struct HeldClock: Equatable {
  /// In `facts`.
  static let factKey = "held"
  private static let marksMax = 400
  private static let markMilliseconds: Int64 = 3_600_000
  private static let writeMilliseconds: Int64 = 600_000
  private static let (recentMax, recentMilliseconds): (Int, Int64) = (120, 60_000)

  /// Every row of a lower sequence was there at this time.
  struct Mark: Equatable {
    var time: Int64
    var sequence: Int64
  }

  private let bootID: String
  /// The time at the uptime 0: when the database was made, and the uptimes of the boots before.
  private let offset: Int64
  /// Of rising times and sequences.
  private(set) var marks: [Mark] = []
  /// Finer ones of about the last hour of this run, which are not written: for `age`.
  private var recent: [Mark] = []
  private var writtenTime: Int64
  private var writtenMarks: [Mark] = []

  /// - Parameter text: as `text` wrote it; nil, or text of another form: the clock begins.
  /// - Parameter begin: milliseconds since 1970 for a clock that begins.
  init(_ text: String?, bootID: String, uptime: Duration, begin: Int64) {
    self.bootID = bootID
    let uptime = uptime.wholeMilliseconds
    writtenTime = .min
    guard let content = text.flatMap(Content.init) else {
      offset = begin - uptime
      return
    }
    // With an unknown boot id, the uptime may have been counted before.
    offset =
      if bootID.isEmpty { content.last - uptime } else if content.bootID == bootID { content.offset } else {
        content.last
      }
    // A machine that came back from a snapshot has the boot id of before and less uptime.
    (marks, writtenMarks) = (content.marks.filter { $0.time <= offset + uptime }, content.marks)
  }

  /// Milliseconds. - Parameter uptime: of this boot.
  func time(_ uptime: Duration) -> Int64 { offset + uptime.wholeMilliseconds }

  /// Rows below `sequence` are committed.
  mutating func note(_ sequence: Int64, _ uptime: Duration) {
    let now = time(uptime)
    guard sequence > marks.last?.sequence ?? 0 else { return }
    let mark = Mark(time: now, sequence: sequence)
    Self.append(mark, to: &marks, apart: Self.markMilliseconds)
    if marks.count > Self.marksMax { thin() }
    Self.append(mark, to: &recent, apart: Self.recentMilliseconds)
    if recent.count > Self.recentMax { recent.removeFirst(Self.recentMax / 2) }
  }

  /// The last mark moves on with the rows until it is far enough from the one before it.
  private static func append(_ mark: Mark, to marks: inout [Mark], apart: Int64) {
    if marks.count > 1, mark.time - marks[marks.count - 2].time < apart { marks.removeLast() }
    marks.append(mark)
  }

  /// Of the older half every second mark goes: their rows count as younger.
  private mutating func thin() {
    let half = marks.count / 2
    marks = marks.indices.filter { $0 >= half || !$0.isMultiple(of: 2) }.map { marks[$0] }
  }

  /// Rows below this sequence are held for `days` and `hours` at least. - Parameter days: 0 or more.
  func end(heldFor days: Int, hours: Int = 0, _ uptime: Duration) -> Int64 {
    let cutoff = time(uptime) - Int64(days) * 86_400_000 - Int64(hours) * 3_600_000
    return marks.last { $0.time < cutoff }?.sequence ?? 0
  }

  /// Since when a row is held, in milliseconds of `time`; nil: it is younger than the last mark.
  func heldSince(_ sequence: Int64) -> Int64? { marks.first { $0.sequence > sequence }?.time }

  /// How long a row is held: what its created time says, if it came then. - Parameter stated: milliseconds.
  func age(of sequence: Int64, stated: Int64, _ uptime: Duration) -> Duration {
    let (now, older) = (time(uptime), marks.prefix { $0.time < recent.first?.time ?? .max })
    let next = older.first { $0.sequence > sequence } ?? recent.first { $0.sequence > sequence }
    let before = recent.last { $0.sequence <= sequence } ?? older.last { $0.sequence <= sequence }
    let least = next.map { now - $0.time } ?? 0
    let most = before.map { now - $0.time } ?? least
    return .milliseconds(min(max(stated, least), max(most, least)))
  }

  // MARK: In the database

  /// Whether it is to be written with a commit. - Parameter holdsRows: there are rows that grow old.
  func isDue(_ uptime: Duration, holdsRows: @autoclosure () -> Bool) -> Bool {
    if writtenTime == .min { return true }
    let unwritten = time(uptime) - writtenTime
    guard unwritten >= Self.writeMilliseconds else { return false }
    return marks != writtenMarks || unwritten >= Self.markMilliseconds && holdsRows()
  }

  /// Whether an end in order has something to write.
  func differs(_ uptime: Duration) -> Bool { marks != writtenMarks || time(uptime) - 60_000 >= writtenTime }

  /// It differs from the database, or may.
  mutating func forgetWritten() { writtenTime = .min }

  mutating func written(_ uptime: Duration) -> String {
    (writtenTime, writtenMarks) = (time(uptime), marks)
    return Content(bootID: bootID, offset: offset, last: writtenTime, marks: marks).text
  }

  /// `SUM BOOT OFFSET LAST TIME:SEQUENCE…`: a damaged number would make every row old.
  private struct Content {
    let bootID: String
    let offset: Int64
    let last: Int64
    let marks: [Mark]

    init(bootID: String, offset: Int64, last: Int64, marks: [Mark]) {
      (self.bootID, self.offset, self.last, self.marks) = (bootID.isEmpty ? "-" : bootID, offset, last, marks)
    }

    var text: String { "\(sum) \(body)" }

    private var body: String {
      ([bootID, String(offset), String(last)] + marks.map { "\($0.time):\($0.sequence)" }).joined(separator: " ")
    }

    private var sum: Int64 {
      var sum = RecordChecksum()
      sum.add(body)
      return sum.value
    }

    init?(_ text: String) {
      let words = text.split(separator: " ")
      guard words.count >= 4, let offset = Int64(words[2]), let last = Int64(words[3]) else { return nil }
      let marks = words.dropFirst(4).compactMap { word -> Mark? in
        let numbers = word.split(separator: ":").compactMap { Int64($0) }
        return numbers.count == 2 ? Mark(time: numbers[0], sequence: numbers[1]) : nil
      }
      self.init(bootID: String(words[1]), offset: offset, last: last, marks: marks)
      guard self.text == text else { return nil }
    }
  }
}
