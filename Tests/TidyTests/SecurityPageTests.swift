import Testing

@Suite struct SecurityPageTests {
  @Test("each suite, harness and mutant that docs/security.md names exists")
  func namesExist() throws {
    let page = try #require(SourceTree.read("docs/security.md"))
    let tests = SourceTree.paths(under: "Tests", ending: ".swift").compactMap { SourceTree.read($0) }
    let suites = page.matches(of: /`(\w+Tests)`/).map { String($0.output.1) }
    try #require(suites.count > 20)
    for suite in Set(suites) {
      #expect(tests.contains { $0.contains("struct \(suite)") }, "there is no suite \(suite)")
    }
    for match in page.matches(of: /`scripts\/fuzz ([a-z-]+)`/) {
      let seeds = SourceTree.paths(under: "Tests/Fuzz/Corpora/\(match.output.1)", ending: "")
      #expect(!seeds.isEmpty, "there is no harness \(match.output.1)")
    }
    let mutants = page.split(separator: "\n").filter { $0.contains(" mutant") }.flatMap { line in
      line.suffix(from: line.firstRange(of: " mutant")!.upperBound).matches(of: /`(\w+)`/).map { String($0.output.1) }
    }
    try #require(mutants.count >= 5)
    for mutant in mutants { #expect(SourceTree.read("Tests/Mutants/\(mutant).patch") != nil, "there is no \(mutant)") }
  }
}
