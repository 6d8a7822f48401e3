/// How text is laid out for people.
extension String {
  /// At least `width` characters, filled with spaces at the end.
  func padded(_ width: Int) -> String { self + String(repeating: " ", count: max(0, width - count)) }
  func paddedLeft(_ width: Int) -> String { String(repeating: " ", count: max(0, width - count)) + self }

  /// Exactly `width` characters, the last a space; what is cut ends in `…`.
  func fitted(_ width: Int) -> String { (count < width ? self : prefix(max(0, width - 2)) + "…").padded(width) }

  /// Lines of at most `columns` characters, broken between words. All but the first are indented. A wider word has its
  /// own line.
  func wrapped(_ columns: Int?, indent: Int = 2) -> [String] {
    guard let columns, count > columns else { return [self] }
    let margin = String(prefix { $0 == " " })
    var lines: [String] = []
    for word in split(separator: " ") {
      if let last = lines.last, last.count + 1 + word.count <= columns {
        lines[lines.count - 1] += " " + word
      } else {
        lines.append(margin + (lines.isEmpty ? "" : String(repeating: " ", count: indent)) + word)
      }
    }
    return lines
  }
}
