import Glibc
import PrismBase
import PrismProtocol

/// The value of `--since`: a span back from now, or a time.
struct Since {
  /// RFC 3339 in UTC, which sorts by time.
  private let earliest: String

  /// nil: the option was not given. - Throws: 64.
  init?(_ invocation: Invocation) throws(Failure) {
    guard let text = invocation["--since"] else { return nil }
    try self.init(text, nowSeconds: time(nil))
  }

  init(_ text: String, nowSeconds: Int) throws(Failure) {
    let units = ["s": 1, "m": 60, "h": 3600, "d": 86_400]
    if let unit = text.last.flatMap({ units[String($0)] }), let count = Int(text.dropLast()),
      (0...100_000).contains(count)
    {
      earliest = RFC3339.text(unixMilliseconds: Int64(nowSeconds - count * unit) * 1000)
      return
    }
    let form = Array("0000-00-00T00:00:00Z")
    let isTime =
      text.count == form.count && zip(text, form).allSatisfy { $1 == "0" ? $0.isASCII && $0.isNumber : $0 == $1 }
    let isDay = text.count == 10 && zip(text, form).allSatisfy { $1 == "0" ? $0.isASCII && $0.isNumber : $0 == $1 }
    guard isTime || isDay else {
      throw .usage("--since: is `\(text)`, must be a span (90s, 15m, 2h, 3d), a day, or a time as 2026-01-31T12:00:00Z")
    }
    // Without the Z a time with milliseconds sorts behind it.
    earliest = isTime ? String(text.dropLast()) : text
  }

  /// - Parameter time: RFC 3339 in UTC.
  func includes(_ time: String) -> Bool { time >= earliest }
}
