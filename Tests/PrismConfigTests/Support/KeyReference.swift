import PrismConfig
import PrismProtocol

/// The table of keys as documentation: a Markdown table, and a commented file.
enum KeyReference {
  static func markdown<Target>(_ table: KeyTable<Target>) -> String {
    var lines = ["| key | meaning | range | unit | default |", "| --- | --- | --- | --- | --- |"]
    for key in table.keys {
      let required = key.isRequired ? "required" : code(table.defaultText(key), isValue: key.defaultNote == nil)
      lines.append("| `\(key.name)` | \(key.meaning) | \(key.allowed) | \(key.unit) | \(required) |")
    }
    return lines.joined(separator: "\n")
  }

  /// The entries of a list of mdoc(7).
  static func manual<Target>(_ table: KeyTable<Target>) -> String {
    table.keys.map { key in
      let unit = key.unit.isEmpty ? "" : " \(key.unit)"
      let standard = key.isRequired ? "required" : "default: \(table.defaultText(key))"
      let meaning = key.meaning.prefix(1).uppercased() + key.meaning.dropFirst() + "."
      return [".It Cm \(key.name)", manualText(meaning), ".br", manualText("\(key.allowed)\(unit); \(standard)") + "."]
        .map { $0 + "\n" }.joined()
    }.joined()
  }

  /// Code in quotes is bold; nothing else is markup, nor a request at the start of a line.
  private static func manualText(_ text: String) -> String {
    let bold = text.replacing("\\", with: "\\e").split(separator: "`", omittingEmptySubsequences: false).enumerated()
      .map { $0.offset.isMultiple(of: 2) ? String($0.element) : "\\fB\($0.element)\\fP" }.joined()
    return bold.hasPrefix(".") || bold.hasPrefix("'") ? "\\&" + bold : bold
  }

  private static func code(_ text: String, isValue: Bool) -> String { isValue ? "`\(text)`" : text }

  /// Every key in a comment with its meaning, range, unit and default. To set one, take the `#` off its line and off its
  /// group's, or write both at the end. So no group is there empty: it would occur twice.
  /// - Parameter set: keys that are not in a comment.
  static func sample<Target>(
    _ table: KeyTable<Target>, head: String, examples: [String: String], set: Set<String> = []
  ) -> String {
    var result = head
    var group = ""
    for key in table.keys {
      let parts = key.name.split(separator: ".", maxSplits: 1).map(String.init)
      let indent = parts.count == 2 ? "  " : ""
      if parts.count == 2, parts[0] != group { result += "\n#\(parts[0]):" }
      group = parts.count == 2 ? parts[0] : ""
      let unit = key.unit.isEmpty ? "" : " \(key.unit)"
      let meaning =
        key.meaning.first == "`" ? key.meaning : key.meaning.prefix(1).uppercased() + key.meaning.dropFirst()
      let facts = "\(key.allowed)\(unit); default: \(table.defaultText(key))"
      let lines = [meaning + ".", facts].flatMap { wrapped($0, width: 100 - indent.count) }
      result += "\n" + lines.map { "\(indent)# \($0)\n" }.joined()
      let value = examples[key.name] ?? table.defaultText(key)
      result += "\(indent)\(set.contains(key.name) ? "" : "#")\(parts.last!): \(value)\n"
    }
    return result
  }

  private static func wrapped(_ text: String, width: Int) -> [String] {
    var lines = [""]
    for word in text.split(separator: " ") {
      if lines[lines.count - 1].count + word.count + 1 > width { lines.append("") }
      lines[lines.count - 1] += lines[lines.count - 1].isEmpty ? word : " " + word
    }
    return lines
  }
}
