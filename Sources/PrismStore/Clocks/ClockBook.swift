import PrismBase

/// How the clock was set last in each of the newest boots: places the times of rows that came under an earlier setting.
struct ClockBook: Equatable {
  /// In `facts`.
  static let factKey = "clocks"
  private static let bootsMax = 32

  struct Boot: Equatable {
    let id: String
    /// The last one in this boot.
    var setting: ClockSetting
    /// The clock was set in this boot: so it was right at the end of it, as far as the device can know.
    var wasSet = false
  }

  /// The oldest first; the last one is this boot.
  private(set) var boots: [Boot]
  /// It differs from the database.
  var needsWriting = false

  /// - Parameter text: as `text` wrote it; what is no boot is left out.
  init(_ text: String) {
    boots = text.split(separator: ";").compactMap { line in
      let words = line.split(separator: " ")
      guard words.count == 3, let bootTime = Int64(words[1]) else { return nil }
      return Boot(id: String(words[0]), setting: ClockSetting(bootTime: bootTime), wasSet: words[2] == "set")
    }
  }

  var text: String {
    boots.map { "\($0.id) \($0.setting.bootTime) \($0.wasSet ? "set" : "-")" }.joined(separator: ";")
  }

  /// The clock is set so now. - Parameter boot: the id of this boot.
  mutating func observe(_ setting: ClockSetting, in boot: String) {
    guard let place = boots.lastIndex(where: { $0.id == boot }) else {
      boots.append(Boot(id: boot, setting: setting))
      boots.removeFirst(max(0, boots.count - Self.bootsMax))
      needsWriting = true
      return
    }
    guard boots[place].setting.step(to: setting) != 0 else { return }
    (boots[place].setting, boots[place].wasSet) = (setting, true)
    needsWriting = true
  }

  /// The clock is still set as the stamp says, in the same boot.
  func isPresent(_ stamp: ClockStamp) -> Bool {
    boots.last.map { $0.id == stamp.bootID && stamp.setting.step(to: $0.setting) == 0 } ?? false
  }

  /// A time by the clock as it was set at `stamp`, by the clock as it is set now.
  /// - Returns: as `isRight` a time of an earlier boot in which the clock was set: the clock of now may be wrong.
  func present(_ time: Int64, of stamp: ClockStamp) -> (time: Int64, isRight: Bool) {
    let correction = correction(of: stamp, createdTime: time)
    let present = time.addingReportingOverflow(correction.step).partialValue
    let wasSet = boots.contains { $0.id == stamp.bootID && $0.wasSet }
    return (present, isRight: wasSet && stamp.bootID != boots.last?.id)
  }

  /// When something was claimed. - Parameter time: milliseconds since 1970, by the clock as it was set at `stamp`.
  func moment(_ time: Int64, of stamp: ClockStamp) -> ClaimTime? {
    if stamp.bootID == boots.last?.id {
      return .uptime(.milliseconds(time.subtractingReportingOverflow(stamp.setting.bootTime).partialValue))
    }
    let present = present(time, of: stamp)
    return present.isRight ? .unixMilliseconds(present.time) : nil
  }

  /// How the time of a row is to be taken.
  /// - Parameter createdTime: milliseconds since 1970, by the clock as it was set at `stamp`.
  func correction(of stamp: ClockStamp, createdTime: Int64) -> ClockCorrection {
    guard let now = boots.last, let boot = boots.last(where: { $0.id == stamp.bootID }) else { return .init() }
    let step = stamp.setting.step(to: boot.setting)
    guard boot.id != now.id else { return ClockCorrection(step: step) }
    // A clock that runs on over a boot is wrong by the same in both. One that was set is right. And a row of an earlier
    // boot is not later than this boot, unless the clock began with an old time again.
    let time = createdTime.addingReportingOverflow(step).partialValue
    return ClockCorrection(step: step, isOfEarlierBoot: boot.wasSet || time > now.setting.bootTime)
  }
}

/// A packet says this about the time of a row, beside the row's own stamp.
struct ClockCorrection: Equatable {
  /// Milliseconds by which the clock was set forward since; 0: it was not set.
  var step: Int64 = 0
  /// The time is by the clock of another boot, which tells nothing about the clock that sends it.
  var isOfEarlierBoot = false
}

struct StoreClock {
  let time: any TimeSource
  let bootID: String
  var book: ClockBook
  var held: HeldClock

  /// The database may have other facts than these.
  mutating func forgetWritten() {
    book.needsWriting = true
    held.forgetWritten()
  }

  /// The stamp of what is written down now; nil on a machine that does not tell its boots apart.
  mutating func stamp() -> ClockStamp? { bootID.isEmpty ? nil : ClockStamp(bootID: bootID, setting: read()) }

  /// How the clock is set now.
  mutating func read() -> ClockSetting {
    let setting = ClockReading(time).setting
    book.observe(setting, in: bootID)
    return setting
  }
}
