/// Spans and times as people write them on a command line: one rule for every program.
public enum WrittenTime {
  /// Why a text is no span or no time, in words that fit after the option's name.
  public struct Fault: Error, Equatable { public let message: String }

  private static let units: [Character: Int64] = ["s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800]
  /// No number below is a time in milliseconds: it is a span without a unit, or a time in seconds.
  private static let millisecondsMin: Int64 = 100_000_000_000

  /// Seconds of `90s`, `15m`, `2h`, `3d` or `2w`; nil: it is no span.
  public static func span(_ text: String) -> Int64? {
    guard let unit = text.last.flatMap({ units[$0] }), let count = Int32(text.dropLast()), count >= 0 else {
      return nil
    }
    return Int64(count) * unit
  }

  /// Seconds of a span of 1 s to `daysMax` days.
  public static func seconds(_ text: String, daysMax: Int64) throws(Fault) -> Int64 {
    guard let seconds = span(text), 1...daysMax * 86_400 ~= seconds else {
      let allowed = Int64(text).map { "write \($0)s, \($0)m, \($0)h or \($0)d" } ?? "90s, 15m, 2h, 3d"
      throw Fault(message: "is `\(text)`, must be a span of at most \(daysMax) days with its unit: \(allowed)")
    }
    return seconds
  }

  /// Milliseconds since 1970 of a span back from now (`15m`), a day (`2026-01-31`), a time
  /// (`2026-01-31T12:00:00Z`), or that number itself; 0 is the begin of all times.
  public static func milliseconds(_ text: String, now: Int64) throws(Fault) -> Int64 {
    if let number = Int64(text), number == 0 || number >= millisecondsMin { return number }
    if let time = RFC3339.unixMilliseconds((text.utf8.count == 10 ? text + "T00:00:00Z" : text).utf8) { return time }
    do throws(Fault) { return now - 1000 * (try seconds(text, daysMax: 36_600)) } catch {
      let allowed = Int16(text).map { "\($0)s, \($0)m, \($0)h, \($0)d" } ?? "90s, 15m, 2h, 3d"
      throw Fault(
        message:
          "is `\(text)`, must be a span (\(allowed)), a day (2026-01-31), a time as 2026-01-31T12:00:00Z, or milliseconds since 1970"
      )
    }
  }
}
