import Testing

/// docs/extending.md walks through adding an input, an output and so on. Here the walk is held to the code.
@Suite struct ExtendingTests {
  private static func page() throws -> String { try #require(SourceTree.read("docs/extending.md")) }

  @Test("every file and folder that the walk names exists") func filesExist() throws {
    let paths = try Self.page().matches(of: /`((?:Sources|Tests|docs|config|scripts)\/[\w+.\/-]+|\w+\.md)`/).map {
      String($0.1)
    }
    try #require(paths.count > 8)
    for path in paths { #expect(SourceTree.exists(path), "there is no \(path)") }
  }

  @Test("the code of the walk is the code of the test implementation that its first line names") func codeIsReal()
    throws
  {
    let blocks = try Self.page().matches(of: /```swift\n\/\/ (\S+)\n((?s:.*?))```/)
    try #require(!blocks.isEmpty)
    for block in blocks {
      let file = try #require(SourceTree.read(String(block.1)), "there is no \(block.1)")
      #expect(file.contains(block.2), "\(block.1) differs from docs/extending.md")
    }
  }

  @Test("a row kind takes at most 12 files, and the patch that adds one changes no file that the walk leaves out")
  func rowKindIsLocal() throws {
    let walk = try #require(try Self.page().split(separator: "\n## ").first { $0.hasPrefix("Add a row kind\n") })
    let lines = walk.split(separator: "\n").filter { $0.hasPrefix("   ") || $0.contains(#/^[0-9]\. /#) }
    let steps = lines.joined(separator: " ")
    let sources = Set(steps.matches(of: /`(Sources\/[\w+.\/-]+\.swift|\w+\.md)`/).map { String($0.1) })
    let pages = Set(steps.matches(of: /\]\(([\w-]+\.md)\)/).map { "docs/\($0.1)" })
    try #require(!sources.isEmpty && !pages.isEmpty)
    #expect(sources.count + pages.count <= 12, "\(sources.union(pages).sorted())")
    for page in pages { #expect(SourceTree.exists(page)) }
    let patch = try #require(MutantPatch("Tests/Extending/thirdRowKind.patch"))
    #expect(Set(patch.hunks.map(\.file)).isSubset(of: sources))
  }

  @Test("the types that the walk names are declared") func typesExist() throws {
    for row in try Self.page().matches(of: /(?m)^\| `([A-Z]\w+)` \|/) {
      let declaration = try Regex("\\b(?:struct|class|enum|protocol|actor) \(row.1)\\b")
      #expect(SourceTree.sources.contains { $0.code.contains(declaration) }, "there is no type \(row.1)")
    }
  }
}
