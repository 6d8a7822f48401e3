import Testing

@Suite struct SoakTests {
  @Test("every target that the reliability page names has a recipe, and `make soak` runs every rig")
  func targets() throws {
    let makefile = try #require(SourceTree.read("Makefile"))
    let page = try #require(SourceTree.read("docs/reliability.md"))
    let matches = page.matches(of: try Regex("`make ([a-z-]+)`"))
    let named = Set(matches.compactMap { $0.output[1].substring.map(String.init) })
    try #require(named.count > 8)
    let all = try #require(makefile.split(separator: "\n").first { $0.hasPrefix("soak: ") })
    for target in named.subtracting(["soak"]) {
      let hasRecipe = makefile.contains(try Regex("(?m)^\(target):[^\\n]*\\n\\t"))
      #expect(hasRecipe, "make \(target) does nothing")
      #expect(!target.hasPrefix("soak-") || all.contains(target), "make soak leaves \(target) out")
    }
  }
}
