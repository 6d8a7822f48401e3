import PrismBase
import Testing

@Suite("Text forms")
struct TextFormTests {
  /// RFC 4648, section 10.
  static let base64 = [
    ("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("fooba", "Zm9vYmE="),
    ("foobar", "Zm9vYmFy"),
  ]

  @Test("base64 is that of RFC 4648, both ways", arguments: base64)
  func base64Vectors(plain: String, encoded: String) {
    #expect(Base64.encode(Array(plain.utf8)) == encoded)
    #expect(Base64.decode(encoded.utf8) == Array(plain.utf8))
  }

  @Test(
    "what is not base64 is refused",
    arguments: ["Z", "Zg", "Zg=", "Zg===", "Zh==", "Zm9=", "Zm 9", "Zg==Zg==", "=", "===="])
  func base64Refused(text: String) {
    #expect(Base64.decode(text.utf8) == nil)
  }

  @Test(
    "a trimmed text loses blanks and control characters at both ends only",
    arguments: [
      ("", ""), (" \t\r\n\0", ""), ("a", "a"), (" a b\r\n", "a b"), ("\u{1}é \u{301}x\u{0}", "é \u{301}x"),
      // A character that joins the blank behind it, and a mark that joins the blank before it.
      ("\u{600} ", "\u{600}"), (" \u{301}", "\u{301}"), (" 你好\u{a0} ", "你好\u{a0}"),
    ])
  func trimmed(text: String, expected: String) {
    #expect(Array(text.trimmed.utf8) == Array(expected.utf8))
  }

  @Test(
    "an escape is two hexadecimal digits: another one stays, and is refused where a text must be sound",
    arguments: [
      ("a%20b%2Fc", "a b/c", "a b/c"), ("%C3%a9", "é", "é"), ("", "", ""), ("100%", "100%", nil), ("%4", "%4", nil),
      ("%zz", "%zz", nil), ("%+1", "%+1", nil), ("%%41", "%A", nil), ("%ff", "\u{FFFD}", nil),
    ] as [(String, String, String?)])
  func escapes(text: String, plain: String, sound: String?) {
    #expect(text.percentDecoded == plain && text.strictlyPercentDecoded == sound)
  }

  @Test("hexadecimal digits come in pairs, in either case")
  func hex() {
    #expect(Hex.encode([0, 0x0F, 0xA0, 0xFF]) == "000fa0ff")
    #expect(Hex.decode("000fA0fF") == [0, 0x0F, 0xA0, 0xFF])
    #expect(Hex.decode("0") == nil)
    #expect(Hex.decode("0g") == nil)
  }

  @Test(
    "a time stamp is RFC 3339 in UTC",
    arguments: [
      (Int64(0), "1970-01-01T00:00:00.000Z"), (-1, "1969-12-31T23:59:59.999Z"),
      (951_782_400_000, "2000-02-29T00:00:00.000Z"), (1_732_154_081_123, "2024-11-21T01:54:41.123Z"),
      (4_102_444_799_999, "2099-12-31T23:59:59.999Z"), (253_402_300_800_000, "10000-01-01T00:00:00.000Z"),
    ])
  func timeStamp(milliseconds: Int64, text: String) {
    #expect(RFC3339.text(unixMilliseconds: milliseconds) == text)
  }

  @Test(
    "a span has its unit; without one the fault says what to write",
    arguments: [
      ("90s", 90), ("15m", 900), ("2h", 7200), ("30d", 2_592_000), ("5", nil), ("31d", nil), ("0s", nil), ("-1h", nil),
      ("h", nil), ("", nil), ("2w", 1_209_600), ("2y", nil), ("99999999999999999999d", nil),
    ] as [(String, Int64?)])
  func span(text: String, seconds: Int64?) {
    #expect((try? WrittenTime.seconds(text, daysMax: 30)) == seconds)
    let fault = #expect(throws: WrittenTime.Fault.self) { try WrittenTime.seconds("5", daysMax: 30) }
    #expect(fault?.message == "is `5`, must be a span of at most 30 days with its unit: write 5s, 5m, 5h or 5d")
  }

  @Test(
    "a time is a span back from now, a day, a time in UTC, or milliseconds",
    arguments: [
      ("15m", 1_769_859_900_000), ("2026-01-31", 1_769_817_600_000), ("2026-01-31T12:00:00Z", 1_769_860_800_000),
      ("2026-01-31T12:00:00.123Z", 1_769_860_800_123), ("1769860800000", 1_769_860_800_000), ("0", 0), ("5", nil),
      ("1769860800", nil), ("2026-02-30", nil), ("2026-01-31T24:00:00Z", nil), ("2026-01-31T12:00:00", nil),
      ("2026-01-31T12:00:00+", nil), ("yesterday", nil), ("-5", nil),
    ] as [(String, Int64?)])
  func writtenTime(text: String, milliseconds: Int64?) {
    #expect((try? WrittenTime.milliseconds(text, now: 1_769_860_800_000)) == milliseconds)
  }
}
