/// A patch in Tests/Mutants: a head of `field: value` lines, then a unified diff.
struct MutantPatch {
  struct Hunk {
    let file: String
    /// The lines that must be there: context and what the patch removes, each with its line feed.
    var before = ""
  }

  let name: String
  private(set) var head: [String: String] = [:]
  private(set) var hunks: [Hunk] = []
  /// The lines that the patch adds.
  private(set) var added = ""

  /// - Returns: nil if the file cannot be read.
  init?(_ path: String) {
    guard let text = SourceTree.read(path), let file = path.split(separator: "/").last else { return nil }
    name = String(file.dropLast(".patch".count))
    var target: String?
    for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
      if line.hasPrefix("+++ b/") {
        target = String(line.dropFirst(6))
      } else if line.hasPrefix("@@"), let target {
        hunks.append(Hunk(file: target))
      } else if target == nil, let colon = line.firstRange(of: ": ") {
        head[String(line[..<colon.lowerBound])] = String(line[colon.upperBound...])
      } else if !line.hasPrefix("--- ") {
        take(line)
      }
    }
  }

  private mutating func take(_ line: Substring) {
    guard let mark = line.first, !hunks.isEmpty else { return }
    if mark == "+" { added += line.dropFirst() + "\n" }
    if mark == " " || mark == "-" { hunks[hunks.count - 1].before += line.dropFirst() + "\n" }
  }
}
