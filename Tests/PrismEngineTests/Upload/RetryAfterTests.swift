import PrismProtocol
import Testing

@testable import PrismEngine

@Suite("Retry-After")
struct RetryAfterTests {
  /// Sunday, 06 November 1994, 08:49:37.
  static let day: Int64 = 784_111_777_000

  @Test(
    "seconds or a date, an hour at most",
    arguments: [
      ("0", .zero), ("1", .seconds(1)), ("  120\t", .seconds(120)), ("3600", .seconds(3600)),
      ("3601", .seconds(3600)), ("99999999999999999999999999", .seconds(3600)), ("007", .seconds(7)),
      ("Sun, 06 Nov 1994 08:50:37 GMT", .seconds(60)), ("Sunday, 06-Nov-94 08:50:37 GMT", .seconds(60)),
      ("Sun Nov  6 08:50:37 1994", .seconds(60)), ("Mon, 07 Nov 1994 08:49:37 GMT", .seconds(3600)),
      ("Fri, 31 Dec 9999 23:59:59 GMT", .seconds(3600)),
      // Not ahead, or nothing that HTTP knows: the backoff decides.
      ("Sun, 06 Nov 1994 08:49:37 GMT", nil), ("Sun, 06 Nov 1994 08:48:37 GMT", nil), ("", nil), (" ", nil),
      ("-1", nil), ("+1", nil), ("1.5", nil), ("1s", nil), ("soon", nil), ("１", nil), ("1, 2", nil),
      ("Thu, 31 Feb 1994 08:49:37 GMT", nil),
    ] as [(String, Duration?)])
  func forms(text: String, expected: Duration?) {
    #expect(RetryAfter.parse(text, serverDate: nil, now: Self.day) == expected)
  }

  @Test(
    "a date is measured from the answer's own, so a wrong clock here is no matter", arguments: [0, 4_102_444_800_000])
  func serverDate(now: Int64) {
    let ahead = RetryAfter.parse(
      "Sun, 06 Nov 1994 08:50:37 GMT", serverDate: " Sun, 06 Nov 1994 08:49:37 GMT ", now: now)
    #expect(ahead == .seconds(60))
  }

  @Test("with an invalid date in the answer this machine's clock counts")
  func badServerDate() {
    #expect(RetryAfter.parse("Sun, 06 Nov 1994 08:50:37 GMT", serverDate: "x", now: Self.day) == .seconds(60))
  }
}

@Suite("Dates of HTTP")
struct HTTPDateTests {
  @Test(
    "the three forms, each to the millisecond",
    arguments: [
      ("Thu, 01 Jan 1970 00:00:00 GMT", 0), ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777_000),
      ("Thu, 29 Feb 2024 23:59:59 GMT", 1_709_251_199_000), ("Sunday, 06-Nov-94 08:49:37 GMT", 784_111_777_000),
      ("Sun Nov  6 08:49:37 1994", 784_111_777_000), ("Sun Nov 16 08:49:37 1994", 784_975_777_000),
      ("Thu, 31 Dec 1998 23:59:60 GMT", 915_148_800_000),
    ] as [(String, Int64)])
  func forms(text: String, expected: Int64) {
    #expect(HTTPDate.unixMilliseconds(text, now: 1_700_000_000_000) == expected)
  }

  @Test(
    "anything else is ignored",
    arguments: [
      "", "x", "Sun, 06 Nov 1994 08:49:37", "Sun, 06 Nov 1994 08:49:37 UTC", "Sun, 6 Nov 94 08:49:37 GMT",
      "Sun, 29 Feb 2023 00:00:00 GMT", "Sun, 00 Nov 1994 08:49:37 GMT", "Sun, 06 nov 1994 08:49:37 GMT",
      "Sun, 06 Nov 1994 24:00:00 GMT", "Sun, 06 Nov 1994 08:60:00 GMT", "Sun, 06 Nov 1994 08:49:61 GMT",
      "Sun, 06 Nov 1994 8:49:37 GMT", "Sun, 06 Nov -994 08:49:37 GMT", "Sunday, 06-Nov-1994 08:49:37 GMT",
      "Sun Nov 6 08:49 1994", "1994-11-06T08:49:37Z",
    ])
  func refused(text: String) {
    #expect(HTTPDate.unixMilliseconds(text, now: 1_700_000_000_000) == nil)
  }

  @Test(
    "two digits of a year are of the century that puts it at most 50 years ahead",
    arguments: [
      ("73", 3_275_510_400_000), ("74", 151_286_400_000), ("99", 940_204_800_000), ("00", 971_827_200_000),
    ] as [(String, Int64)])
  func century(year: String, expected: Int64) {
    // Now: November 2023. 18 October of each.
    #expect(HTTPDate.unixMilliseconds("X, 18-Oct-\(year) 00:00:00 GMT", now: 1_700_000_000_000) == expected)
  }
}
