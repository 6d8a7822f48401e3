/// Time stamps of RFC 3339 in UTC, without Foundation (which costs an idle daemon 4 MiB).
public enum RFC3339 {
  /// `2026-11-21T01:14:41.123Z`
  public static func text(unixMilliseconds: Int64) -> String {
    let (days, rest) = unixMilliseconds.flooringDivided(by: 86_400_000)
    let (year, month, day) = civil(daysSince1970: days)
    let (hour, minute) = (rest / 3_600_000, rest / 60_000 % 60)
    let (second, millisecond) = (rest / 1000 % 60, rest % 1000)
    return "\(padded(year, 4))-\(padded(month, 2))-\(padded(day, 2))T"
      + "\(padded(hour, 2)):\(padded(minute, 2)):\(padded(second, 2)).\(padded(millisecond, 3))Z"
  }

  /// Days of the proleptic Gregorian calendar to a date (Howard Hinnant, "chrono-compatible low-level date algorithms").
  package static func civil(daysSince1970 days: Int64) -> (year: Int64, month: Int64, day: Int64) {
    let (era, dayOfEra) = (days + 719_468).flooringDivided(by: 146_097)
    let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let shiftedMonth = (5 * dayOfYear + 2) / 153
    let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
    return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, dayOfYear - (153 * shiftedMonth + 2) / 5 + 1)
  }

  /// The inverse of `civil`.
  package static func daysSince1970(year: Int64, month: Int64, day: Int64) -> Int64 {
    let (era, yearOfEra) = (year - (month <= 2 ? 1 : 0)).flooringDivided(by: 400)
    let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
    return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
  }

  /// `2026-01-31T12:00:00.123+01:00`, with any digits of a fraction, or `Z`; nil for another form, and for no date of the calendar.
  public static func unixMilliseconds(_ text: some Sequence<UInt8>) -> Int64? {
    let bytes = Array(text)
    func number(_ places: Range<Int>) -> Int64? {
      guard places.upperBound <= bytes.count, bytes[places].allSatisfy(\.isASCIIDigit) else { return nil }
      return bytes[places].reduce(0) { $0 * 10 + Int64($1 - UInt8(ascii: "0")) }
    }
    guard (20...40).contains(bytes.count), let year = number(0..<4), let month = number(5..<7),
      let day = number(8..<10), let hour = number(11..<13), hour < 24, let minute = number(14..<16), minute < 60,
      let second = number(17..<19), second <= 60, zip([4, 7, 10, 13, 16], "--T::".utf8).allSatisfy({ bytes[$0] == $1 })
    else { return nil }
    let days = daysSince1970(year: year, month: month, day: day)
    guard civil(daysSince1970: days) == (year, month, day) else { return nil }
    var (end, milliseconds): (Int, Int64) = (19, 0)
    if bytes[19] == UInt8(ascii: ".") {
      end = bytes[20...].firstIndex { !$0.isASCIIDigit } ?? bytes.count
      guard end > 20 else { return nil }
      for place in 20..<23 { milliseconds = milliseconds * 10 + (place < end ? Int64(bytes[place]) - 48 : 0) }
    }
    var zone: Int64 = 0
    if bytes[end...].count == 6, let hours = number(end + 1..<end + 3), let minutes = number(end + 4..<end + 6),
      hours < 24, minutes < 60, bytes[end + 3] == UInt8(ascii: ":"), "+-".utf8.contains(bytes[end])
    {
      zone = (hours * 60 + minutes) * (bytes[end] == UInt8(ascii: "+") ? 60_000 : -60_000)
    } else if !bytes[end...].elementsEqual("Z".utf8) {
      return nil
    }
    return ((days * 24 + hour) * 60 + minute) * 60_000 + second * 1000 + milliseconds - zone
  }

  private static func padded(_ number: Int64, _ width: Int) -> String {
    let digits = String(number)
    return String(repeating: "0", count: max(0, width - digits.count)) + digits
  }
}

extension Int64 {
  fileprivate func flooringDivided(by divisor: Int64) -> (quotient: Int64, remainder: Int64) {
    let (quotient, remainder) = quotientAndRemainder(dividingBy: divisor)
    return remainder < 0 ? (quotient - 1, remainder + divisor) : (quotient, remainder)
  }
}
