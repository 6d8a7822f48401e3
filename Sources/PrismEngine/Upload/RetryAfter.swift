/// How long a collector asks to be left alone: the header `Retry-After` (RFC 9110, section 10.2.3).
enum RetryAfter {
  /// However long the collector asks for, it is asked again after this.
  static let longest: Duration = .seconds(3600)

  /// nil for what is neither a number of seconds nor a date, and for a date that is not ahead.
  /// - Parameter serverDate: the answer's `Date`; a date is measured from it, so that a wrong clock here is no matter.
  static func parse(_ value: String, serverDate: String?, now: Int64) -> Duration? {
    let text = value.trimmingBlanks
    guard !text.isEmpty else { return nil }
    if text.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }) {
      return min(longest, .seconds(Int64(text) ?? .max / 2))
    }
    guard let date = HTTPDate.unixMilliseconds(text, now: now) else { return nil }
    let start = serverDate.flatMap { HTTPDate.unixMilliseconds($0.trimmingBlanks, now: now) } ?? now
    return date > start ? min(longest, .milliseconds(date - start)) : nil
  }
}

extension String {
  /// Without the blanks and tabs around it that HTTP allows in a header's value.
  var trimmingBlanks: String {
    let isBlank = { (byte: UInt8) in byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }
    let start = utf8.firstIndex { !isBlank($0) } ?? endIndex
    let end = utf8.lastIndex { !isBlank($0) }.map { utf8.index(after: $0) } ?? start
    return String(self[start..<end])
  }
}
