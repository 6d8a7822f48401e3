/// The public declarations of a Swift file and those for the package, and which of them have a doc comment.
enum PublicDeclarations {
  struct Declaration: Equatable, CustomStringConvertible {
    /// Counts from 1.
    let line: Int
    let text: String
    let isDocumented: Bool
    var description: String { "\(line): \(text)" }
  }

  /// Members whose meaning their protocol gives, and initializers that do nothing but take the members.
  private static let inherited = [
    "var description", "var debugDescription", "var errorDescription", "func hash(", "static func ==", "static func <",
    "static func ~=", "var unownedExecutor", "var hashValue", "func makeIterator(", "func next()",
    "func encode(", "var customMirror", "static func leavesOut(", "var controlJSON", "var startIndex", "var endIndex",
    "init(", "init?(controlJSON ", "func enqueue(", "func checkIsolated(", "var heldBytes", "var hasMessage",
    "var messageBytes", "var mustClose", "var isTooLarge", "func takeOutput()", "func takeMessage()", "func consume(",
    "let dialect", "var dialect", "func horizon()", "func begin(isWriting", "func commit()", "func rollBack()",
    "func rows(_ sql", "func lock(", "func description(of",
  ]
  private static let modifiers: Set<Substring> = [
    "public", "package", "open", "static", "final", "mutating", "nonisolated", "convenience", "override", "consuming",
    "borrowing",
    "indirect", "lazy", "weak", "private(set)", "package(set)", "internal(set)", "fileprivate(set)", "required",
  ]
  private static let keywords: Set<Substring> = [
    "func", "var", "let", "struct", "enum", "class", "actor", "protocol", "typealias", "subscript",
  ]

  static func all(in text: String) -> [Declaration] {
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false).map { $0.drop { $0 == " " } }
    return lines.indices.compactMap { index in
      guard let declaration = publicDeclaration(in: lines[index]) else { return nil }
      return Declaration(line: index + 1, text: declaration, isDocumented: isDocumented(index, in: lines))
    }
  }

  /// - Returns: the declaration without attributes and modifiers; nil if the line holds no public one.
  private static func publicDeclaration(in line: Substring) -> String? {
    var words = line.split(separator: " ").drop { $0.hasPrefix("@") }
    guard ["public", "package", "open"].contains(words.first) else { return nil }
    let isStatic = words.contains("static")
    words = words.drop { modifiers.contains($0) }
    guard let keyword = words.first, keywords.contains(keyword) || keyword.hasPrefix("init") else { return nil }
    let declaration = (isStatic ? "static " : "") + words.joined(separator: " ")
    return inherited.contains { declaration.contains($0) } ? nil : declaration
  }

  /// Whether a `///` is right above, attributes between them apart.
  private static func isDocumented(_ index: Int, in lines: [Substring]) -> Bool {
    var above = index - 1
    while above >= 0, lines[above].hasPrefix("@") || lines[above].hasPrefix("// ") { above -= 1 }
    return above >= 0 && (lines[above].hasPrefix("///") || lines[above].hasSuffix("*/"))
  }
}
