/// Text of foreign origin as a terminal, a pager or a log viewer may show it. Everything that prism prints or logs and
/// that a client, a collector, a server or a file had a say in passes through here.
public enum OutputText {
  /// Whether a character ends a line, drives a terminal or changes the direction of text. These are C0 and C1 controls,
  /// DEL, the line and paragraph separators, and the characters of the Unicode bidirectional algorithm.
  @inlinable
  public static func isControl(_ scalar: Unicode.Scalar) -> Bool {
    let value = scalar.value
    if value < 0x7F { return scalar < " " }  // nearly all text
    return switch value {
    case 0x7F..<0xA0, 0x061C, 0x200E, 0x200F, 0x2028...0x202E, 0x2066...0x206F: true
    default: false
    }
  }

  /// One line: each control character as `\u{1b}`.
  public static func line(_ text: String) -> String { escaped(text) { "\\u{\(String($0.value, radix: 16))}" } }

  /// Several lines: line feeds stay.
  public static func lines(_ text: String) -> String {
    escaped(text) { $0 == "\n" ? "\n" : "\\u{\(String($0.value, radix: 16))}" }
  }

  /// JSON text as one line of the same value. White space between tokens becomes spaces; in a sound text other control
  /// characters occur only in strings, where `\u001b` means the same.
  public static func json(_ text: String) -> String {
    escaped(text) { ["\n", "\r", "\t"].contains($0) ? " " : jsonEscape($0) }
  }

  /// `\u001b`; every control character is in the first plane.
  public static func jsonEscape(_ scalar: Unicode.Scalar) -> String {
    let digits = String(scalar.value, radix: 16)
    return "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
  }

  private static func escaped(_ text: String, _ escape: (Unicode.Scalar) -> String) -> String {
    guard text.unicodeScalars.contains(where: isControl) else { return text }
    var result = ""
    for scalar in text.unicodeScalars {
      if isControl(scalar) { result += escape(scalar) } else { result.unicodeScalars.append(scalar) }
    }
    return result
  }
}

extension String {
  /// `1 row`, `2 rows`
  public func counted(_ count: Int) -> String { "\(count) \(self)\(count == 1 ? "" : "s")" }
}
