import PrismBase

/// How long a collector asks to be left alone: the header `Retry-After` (RFC 9110, section 10.2.3).
enum RetryAfter {
  /// However long the collector asks for, it is asked again after this.
  static let longest: Duration = .seconds(3600)

  /// nil for what is neither a number of seconds nor a date, and for a date that is not ahead.
  /// - Parameter serverDate: the answer's `Date`; a date is measured from it, so that a wrong clock here is no matter.
  static func parse(_ value: String, serverDate: String?, now: Int64) -> Duration? {
    let text = value.trimmed
    guard !text.isEmpty else { return nil }
    if text.utf8.allSatisfy(\.isASCIIDigit) {
      return min(longest, .seconds(Int64(text) ?? .max / 2))
    }
    guard let date = HTTPDate.unixMilliseconds(text, now: now) else { return nil }
    let start = serverDate.flatMap { HTTPDate.unixMilliseconds($0.trimmed, now: now) } ?? now
    return date > start ? min(longest, .milliseconds(date - start)) : nil
  }
}

/// The three forms of a date in HTTP (RFC 9110, section 5.6.7), to milliseconds since 1970.
enum HTTPDate {
  private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

  /// nil if it does not have one of the three forms, or is no date of the calendar.
  /// - Parameter now: decides the century of the obsolete form's two-digit year.
  static func unixMilliseconds(_ text: String, now: Int64) -> Int64? {
    let words = text.split(separator: " ", omittingEmptySubsequences: true).map(String.init)
    switch words.count {
    case 6 where words[5] == "GMT":  // Sun, 06 Nov 1994 08:49:37 GMT
      return instant(day: words[1], month: words[2], year: digits(words[3], 4...4), time: words[4])
    case 4 where words[3] == "GMT":  // Sunday, 06-Nov-94 08:49:37 GMT
      let date = words[1].split(separator: "-", omittingEmptySubsequences: false).map(String.init)
      guard date.count == 3, let short = digits(date[2], 2...2) else { return nil }
      return instant(day: date[0], month: date[1], year: fullYear(short, now: now), time: words[2])
    case 5:  // Sun Nov  6 08:49:37 1994
      return instant(day: words[2], month: words[1], year: digits(words[4], 4...4), time: words[3])
    default: return nil
    }
  }

  private static func instant(day: String, month: String, year: Int64?, time: String) -> Int64? {
    guard let year, let day = digits(day, 1...2), let month = months.firstIndex(of: month).map({ Int64($0) + 1 }),
      let seconds = secondOfDay(time)
    else { return nil }
    let days = RFC3339.daysSince1970(year: year, month: month, day: day)
    guard RFC3339.civil(daysSince1970: days) == (year, month, day) else { return nil }  // 31 February, say
    return (days * 86_400 + seconds) * 1000
  }

  private static func secondOfDay(_ text: String) -> Int64? {
    let parts = text.split(separator: ":", omittingEmptySubsequences: false).map { digits(String($0), 2...2) }
    guard parts.count == 3, let hour = parts[0], let minute = parts[1], let second = parts[2] else { return nil }
    guard hour < 24, minute < 60, second < 61 else { return nil }  // 60: a leap second
    return hour * 3600 + minute * 60 + second
  }

  /// A two-digit year that seems more than 50 years ahead is the last one in the past with these digits.
  private static func fullYear(_ short: Int64, now: Int64) -> Int64 {
    let thisYear = RFC3339.civil(daysSince1970: now / 86_400_000).year
    let year = thisYear / 100 * 100 + short
    return year > thisYear + 50 ? year - 100 : year
  }

  private static func digits(_ text: String, _ counts: ClosedRange<Int>) -> Int64? {
    counts.contains(text.utf8.count) && text.utf8.allSatisfy(\.isASCIIDigit) ? Int64(text) : nil
  }
}
