import PrismTestSupport
import Testing

@testable import PrismBase

@Suite("Text that is safe to print") struct OutputTextTests {
  @Test(
    "control characters are escaped, everything else stays",
    arguments: [
      ("", "", "", ""), ("plain ä 中 👩‍👩‍👧", "plain ä 中 👩‍👩‍👧", "plain ä 中 👩‍👩‍👧", "plain ä 中 👩‍👩‍👧"),
      ("\u{1B}]0;owned\u{7}", #"\u{1b}]0;owned\u{7}"#, #"\u{1b}]0;owned\u{7}"#, #"\u001b]0;owned\u0007"#),
      ("a\nb\tc\rd", #"a\u{a}b\u{9}c\u{d}d"#, "a\nb\\u{9}c\\u{d}d", "a b c d"),
      (
        "\u{7F}\u{80}\u{9B}31m\u{9F}\u{A0}", "\\u{7f}\\u{80}\\u{9b}31m\\u{9f}\u{A0}",
        "\\u{7f}\\u{80}\\u{9b}31m\\u{9f}\u{A0}",
        "\\u007f\\u0080\\u009b31m\\u009f\u{A0}"
      ),
      (
        "a\u{202E}b\u{2066}c\u{2069}\u{61C}", #"a\u{202e}b\u{2066}c\u{2069}\u{61c}"#,
        #"a\u{202e}b\u{2066}c\u{2069}\u{61c}"#,
        #"a\u202eb\u2066c\u2069\u061c"#
      ),
      (
        "\u{2028}\u{2029}\u{200E}\u{200F}\u{206A}", #"\u{2028}\u{2029}\u{200e}\u{200f}\u{206a}"#,
        #"\u{2028}\u{2029}\u{200e}\u{200f}\u{206a}"#, #"\u2028\u2029\u200e\u200f\u206a"#
      ),
      ("\r\n", #"\u{d}\u{a}"#, "\\u{d}\n", "  "),
    ])
  func escapes(text: String, line: String, lines: String, json: String) {
    #expect(OutputText.line(text) == line)
    #expect(OutputText.lines(text) == lines)
    #expect(OutputText.json(text) == json)
    #expect(OutputText.line(line) == line, "it is escaped once")
  }

  @Test("of all scalars exactly the controls and the characters that turn the direction are escaped") func allScalars()
  {
    var escaped: [ClosedRange<UInt32>] = []
    for value in (0...0x10FFFF as ClosedRange<UInt32>) {
      guard let scalar = Unicode.Scalar(value), OutputText.isControl(scalar) else { continue }
      if let last = escaped.last, last.upperBound + 1 == value {
        escaped[escaped.count - 1] = last.lowerBound...value
      } else {
        escaped.append(value...value)
      }
    }
    #expect(
      escaped == [0...0x1F, 0x7F...0x9F, 0x61C...0x61C, 0x200E...0x200F, 0x2028...0x202E, 0x2066...0x206F])
  }

  @Test("the log's lines don't hold them, in either format", arguments: [Logger.Format.text, .json])
  func log(format: Logger.Format) {
    nonisolated(unsafe) var lines: [String] = []
    let log = Logger(format: format, write: { lines.append($0) })
    let hostile = "\u{1B}[2J\u{9B}31m\u{202E}\u{2066}\n<3>error forged\u{2028}"
    log.warning("a message \(hostile)", ["cause": hostile])
    log.audit("an audit", [(key: "reportId", value: hostile)])
    #expect(lines.count == 2)
    for line in lines {
      #expect(line.hasSuffix("\n") && !line.dropLast().unicodeScalars.contains(where: OutputText.isControl))
    }
  }

  @Test("an audit line is written at every level") func audit() {
    nonisolated(unsafe) var lines: [String] = []
    Logger(level: .error, toJournal: true, write: { lines.append($0) })
      .audit("control command", [(key: "uid", value: "0")])
    #expect(lines == ["<6>info control command uid=0\n"])
  }
}
