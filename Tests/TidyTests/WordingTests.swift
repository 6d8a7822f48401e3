import Testing

@Suite struct WordingTests {
  /// Put together here, so that this file holds none of them.
  private static let unfinished = ["TO" + "DO", "FIX" + "ME", "X" + "XX"]

  @Test("nothing is left for later") func nothingIsUnfinished() throws {
    let words = try Regex("\\b(" + Self.unfinished.joined(separator: "|") + ")\\b")
    for file in SourceTree.sources + SourceTree.tests {
      for (index, line) in file.lines.enumerated() { #expect(!line.contains(words), "\(file):\(index + 1)") }
    }
  }

  @Test("a failure of the world never traps", arguments: ["fatalError(", "try!", "as!", "import Foundation"])
  func nothingTraps(word: String) {
    for file in SourceTree.sources { #expect(!file.code.contains(word), "\(file)") }
  }

  @Test(
    "the compiler's word on concurrency is overruled three times at most, with the reason in the line above",
    arguments: ["@unchecked Sendable", "nonisolated(unsafe)"]
  ) func overrulingIsRare(word: String) {
    var count = 0
    for file in SourceTree.sources {
      let (code, lines) = (file.code.split(separator: "\n", omittingEmptySubsequences: false), file.lines)
      for (index, line) in code.enumerated() where line.contains(word) {
        count += 1
        let above = index > 0 ? lines[index - 1].drop { $0 == " " } : ""
        #expect(above.hasPrefix("//"), "\(file):\(index + 1): why is that safe?")
      }
    }
    #expect(count <= 3)
  }

  @Test("a test never waits for time: it pauses only inside a loop that looks for a condition") func testsDoNotSleep() {
    for file in SourceTree.tests {
      let lines = file.code.split(separator: "\n", omittingEmptySubsequences: false)
      for (index, line) in lines.enumerated()
      where line.contains(/\b(Task|Thread)\.sleep|\busleep\(|[^a-z.]sleep\([0-9]/) {
        let before = lines[max(0, index - 4)...index].joined(separator: "\n")
        #expect(before.contains(/\b(while|repeat|for|until)\b/), "\(file):\(index + 1)")
      }
    }
  }

  @Test("a character has its name, not its number: `UInt8(ascii:)` or a constant") func charactersAreNamed() {
    let number = /0x(?:0[9AaDd]|[2-6][0-9A-Fa-f]|7[0-9A-Ea-e])\b/
    for file in SourceTree.sources {
      let found = file.code.matches(of: number).map(\.output)
      #expect(found.isEmpty, "\(file): \(found)")
    }
  }

  @Test("every page of docs/ is in the list of pages, which the README names") func pagesAreLinked() throws {
    #expect(try #require(SourceTree.read("README.md")).contains("(docs/README.md)"))
    let list = try #require(SourceTree.read("docs/README.md"))
    for page in SourceTree.paths(under: "docs", ending: ".md") where page != "docs/README.md" {
      #expect(list.contains("(\(page.dropFirst(5)))"), "\(page)")
    }
  }

  @Test("the README has three doors of four links") func doors() throws {
    let readme = try #require(SourceTree.read("README.md"))
    let section = try #require(readme.split(separator: "\n## ").first { $0.hasPrefix("Where to go on") })
    let rows = section.split(separator: "\n").filter { $0.hasPrefix("| ") }.dropFirst(2)
    #expect(rows.count == 4 && rows.allSatisfy { $0.split(separator: "|").count == 3 })
  }

  @Test("every link of a page leads to a file") func linksLeadSomewhere() {
    for page in ["README.md", "CONTRIBUTING.md"] + SourceTree.paths(under: "docs", ending: ".md") {
      let folder = page.split(separator: "/").dropLast().map { $0 + "/" }.joined()
      for match in (SourceTree.read(page) ?? "").matches(of: /\]\(([^):#]+)(?:#[^)]*)?\)/) {
        let target = folder + match.1
        #expect(SourceTree.exists(target), "\(page) links to \(match.1)")
      }
    }
  }

  @Test("a comment cites only pages and sections that exist") func citationsExist() throws {
    let citation = /((?:[\w.-]+\/)*[\w-]+\.md)(?:, "([^"]+)")?/
    for file in SourceTree.sources + SourceTree.tests {
      for comment in file.lines where comment.contains(/^\s*\/\//) {
        for match in comment.matches(of: citation) where !match.1.hasPrefix("github.com/") {
          let page = try #require(SourceTree.read(String(match.1)), "\(file) cites \(match.1)")
          guard let section = match.2 else { continue }
          #expect(page.contains(try Regex("(?m)^#+ \\Q\(section)\\E")), "\(file): \(match.1) has no \(section)")
        }
      }
    }
  }

  @Test("prismctl reads the daemon's answers as values, not by the names of their members") func answersAreTyped() {
    for file in SourceTree.sources(of: "prismctl") {
      for (index, line) in file.lines.enumerated() {
        #expect(!line.contains(/[\w)\]?]\["[a-zA-Z]+"\]/), "\(file):\(index + 1)")
      }
    }
  }
}
