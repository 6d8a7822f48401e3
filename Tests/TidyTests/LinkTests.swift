import Foundation
import Testing

/// The pages' links: each leads to a file of the repository, and an anchor to a heading of its page.
@Suite struct LinkTests {
  private static let pages =
    SourceTree.paths(under: "docs", ending: ".md") + [
      "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md",
    ]

  @Test("every link of a page leads somewhere", arguments: pages)
  func links(page: String) throws {
    let text = try #require(SourceTree.read(page))
    for target in Self.targets(of: text) where target.wholeMatch(of: /[a-z]+:.*/) == nil {
      let parts = target.split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
      let path = parts[0].isEmpty ? page : Self.path(parts[0], from: page)
      #expect(SourceTree.exists(path), "\(target)")
      guard parts.count == 2, path.hasSuffix(".md"), let other = SourceTree.read(path) else { continue }
      #expect(Self.anchors(of: other).contains(parts[1]), "\(target)")
    }
  }

  @Test("a link and its anchor are found, text in blocks of code is skipped, and a name given twice is numbered")
  func reading() {
    let text =
      "# A page: `x`!\n```sh\n[a](b.md)\n# no heading\n```\n[c](d.md#a-page-x) ![e](f.png)\n## Twice\n## Twice\n"
    #expect(Self.targets(of: text) == ["d.md#a-page-x", "f.png"])
    #expect(Self.anchors(of: text) == ["a-page-x", "twice", "twice-1"])
  }

  private static func prose(_ text: String) -> [Substring] {
    var isCode = false
    return text.split(separator: "\n", omittingEmptySubsequences: false).filter { line in
      if line.hasPrefix("```") { isCode.toggle() }
      return !isCode && !line.hasPrefix("```")
    }
  }

  private static func targets(of text: String) -> [String] {
    prose(text).flatMap { $0.matches(of: /\]\(([^)\s]+)\)/).map { String($0.1) } }
  }

  /// As GitHub makes them: in lower case, spaces to hyphens, anything but letters, digits, hyphens and `_` left out.
  private static func anchors(of text: String) -> Set<String> {
    var counts: [String: Int] = [:]
    return Set(
      prose(text).filter { $0.wholeMatch(of: /#{1,6} .*/) != nil }.map { line in
        let title = line.drop { $0 == "#" }.dropFirst().lowercased().replacing(/\]\([^)]*\)/, with: "]")
        let anchor = title.compactMap { letter -> Character? in
          if letter == " " { return "-" }
          return letter.isLetter || letter.isNumber || letter == "-" || letter == "_" ? letter : nil
        }
        let count = counts[String(anchor), default: 0]
        counts[String(anchor)] = count + 1
        return count == 0 ? String(anchor) : "\(String(anchor))-\(count)"
      })
  }

  private static func path(_ target: String, from page: String) -> String {
    var parts = page.split(separator: "/").dropLast().map(String.init)
    for part in target.split(separator: "/") {
      if part == ".." { _ = parts.popLast() } else if part != "." { parts.append(String(part)) }
    }
    return parts.joined(separator: "/")
  }
}
