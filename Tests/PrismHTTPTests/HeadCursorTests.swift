import Testing

@testable import PrismHTTP

/// The ends of lines as two versions of libmicrohttpd leave them. Only one of the two is installed; Debian 12 has the first.
@Suite("The ends of lines in a head") struct HeadCursorTests {
  /// Bytes behind the value of the header, and how many of them are the line's end.
  static let ends: [(version: String, bytes: [UInt8], length: Int)] = [
    ("0.9", [0, 0, 0x41], 2), ("0.9, of the empty line", [0, 0], 2),
    ("1.0", [0, 0x0A, 0x41], 2), ("1.0, of the empty line", [0x0D, 0x0A], 2),
    ("1.0, behind a blank", [0, 0x0D, 0x0A, 0x41], 3), ("1.0, behind three blanks", [0, 0x20, 0x09, 0x0D, 0x0A], 5),
  ]

  @Test("the end of a line is found, as 0.9 and 1.0 leave it", arguments: ends)
  func end(version: String, bytes: [UInt8], length: Int) throws {
    #expect(Self.length(bytes, lineFeedsStay: true) == length)
    // Where 0.9 is, such bytes of 1.0 came from the client.
    #expect(Self.length(bytes, lineFeedsStay: false) == (version.hasPrefix("0.9") ? length : nil))
  }

  @Test(
    "a NUL in a value, LF alone and CR alone are no end",
    arguments: [
      [0, 0x41, 0, 0], [0, 0x20, 0, 0], [0, 0x20, 0x41, 0x0D, 0x0A], [0x0A, 0x41], [0x0A, 0x0A], [0x0D, 0x41],
      [0x20, 0x0D, 0x0A], [0, 0x0D, 0x41],
    ] as [[UInt8]])
  func noEnd(bytes: [UInt8]) {
    for lineFeedsStay in [false, true] { #expect(Self.length(bytes, lineFeedsStay: lineFeedsStay) == nil) }
  }

  private static func length(_ bytes: [UInt8], lineFeedsStay: Bool) -> Int? {
    (bytes + [0x42, 0x42]).map { CChar(truncatingIfNeeded: $0) }.withUnsafeBufferPointer { buffer in
      buffer.baseAddress.flatMap { start in HeadCursor.afterEnd(start, lineFeedsStay).map { $0 - start } }
    }
  }
}
