import Testing

/// The pictures of the pages: each is made from its current source, holds on dark screens, and is described in words.
@Suite struct DiagramTests {
  private static let pages = SourceTree.paths(under: "docs", ending: ".md") + ["README.md"]
  private static let sources = SourceTree.paths(under: "docs/diagrams", ending: ".dot")

  /// The text alternative and the target of each image.
  private static func images(of text: String) -> [(words: String, target: String)] {
    text.matches(of: /!\[([^\]]*)\]\(([^)\s]+)\)/).map { (String($0.1), String($0.2)) }
  }

  /// The source that `scripts/diagrams` has put into a picture.
  private static func source(in picture: String) -> String? {
    picture.firstMatch(of: /<metadata><!\[CDATA\[\n((?s:.*?))\]\]><\/metadata>/).map { String($0.1) }
  }

  @Test("a diagram is made from its current source, for light and dark screens", arguments: sources)
  func isCurrent(path: String) throws {
    let picture = try #require(SourceTree.read(path.replacing(".dot", with: ".svg")), "scripts/diagrams makes it")
    #expect(Self.source(in: picture) == SourceTree.read(path), "scripts/diagrams makes it again")
    #expect(picture.contains("prefers-color-scheme: dark"))
    #expect(picture.contains("<title>") && picture.contains("fill=\"#ffffff\""), "a title, and a ground of its own")
  }

  @Test("each diagram has a source, and a page shows it") func areShown() {
    #expect(Self.sources.count >= 10)
    let pictures = SourceTree.paths(under: "docs/diagrams", ending: ".svg")
    #expect(pictures.map { $0.replacing(".svg", with: ".dot") }.sorted() == Self.sources.sorted())
    let shown = Set(Self.pages.flatMap { Self.images(of: SourceTree.read($0) ?? "").map(\.target) })
    for picture in pictures {
      #expect(shown.contains(String(picture.trimmingPrefix("docs/"))), "\(picture): no page of docs shows it")
    }
  }

  @Test(
    "a command of prismctl has a picture at two sizes of a terminal",
    arguments: ["status", "top", "doctor", "explain", "trace", "dead"])
  func terminals(command: String) throws {
    for size in ["80x24", "120x40"] {
      let path = "docs/terminal/\(command)-\(size).svg"
      let picture = try #require(SourceTree.read(path), "scripts/terminal-pictures makes it")
      #expect(picture.contains("<title>prismctl \(command)") && picture.contains("prefers-color-scheme: dark"))
    }
  }

  @Test("the README has at most 120 lines, and shows the page and `prismctl top`") func readme() throws {
    let text = try #require(SourceTree.read("README.md"))
    #expect(text.split(separator: "\n", omittingEmptySubsequences: false).count <= 121)
    let shown = Set(Self.images(of: text).map(\.target))
    #expect(shown.isSuperset(of: ["docs/page-fleet.png", "docs/terminal/top-80x24.svg"]))
  }

  @Test("a page says in words what its pictures show", arguments: pages) func areDescribed(page: String) throws {
    for image in Self.images(of: try #require(SourceTree.read(page))) {
      #expect(image.words.split(separator: " ").count >= 4, "\(image.target): the text alternative is too short")
    }
  }

  @Test("a picture of another source is found") func reading() {
    let picture = "<svg><metadata><![CDATA[\ndigraph \"A\" {}\n]]></metadata><style/></svg>"
    #expect(Self.source(in: picture) == "digraph \"A\" {}\n")
    #expect(Self.source(in: "<svg/>") == nil)
    #expect(Self.images(of: "[a](b.md) ![one two](c.svg)").map(\.target) == ["c.svg"])
  }
}
