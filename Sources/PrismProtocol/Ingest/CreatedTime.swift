/// The values that a report's `createdTime` may have: milliseconds since 1970.
///
/// A clock in seconds or microseconds gives a number that is a valid time, but wrong by decades. Such a report would
/// arrive with a date in 1970. So it is refused, and the message says what the number looks like.
public enum CreatedTime {
  /// 1973-03-03. As seconds this is the year 5138.
  public static let least: Int64 = 100_000_000_000
  /// The end of the year 9999.
  public static let greatest: Int64 = 253_402_300_799_999

  private static let allowed = "`createdTime` must be milliseconds since 1970, up to the year 9999"

  /// - Parameter unixMilliseconds: now. On a machine whose own clock is in the seventies, such times are taken.
  public static func check(_ milliseconds: Int64, unixMilliseconds now: Int64) throws(Refusal) {
    guard milliseconds < least, now >= least else { return }
    let unit = milliseconds >= least / 1000 ? "seconds" : "no time of day"
    throw Refusal(.badRequest, "`createdTime` is in milliseconds since 1970; \(milliseconds) looks like \(unit)")
  }

  /// - Returns: the same time. - Throws: `bad_request` for what is no time up to the year 9999.
  public static func checked(_ milliseconds: Int64) throws(Refusal) -> Int64 {
    guard 0...greatest ~= milliseconds else { throw Refusal(.badRequest, outOfRange(Double(milliseconds))) }
    return milliseconds
  }

  /// - Parameter number: as it was written; not a time up to the year 9999.
  static func outOfRange(_ number: Double) -> String {
    switch number {
    case Double(greatest)..<1e17: "\(allowed); this looks like microseconds"
    case 1e17..<1e20: "\(allowed); this looks like nanoseconds"
    default: allowed
    }
  }
}
