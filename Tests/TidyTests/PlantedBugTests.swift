import Testing

@Suite struct PlantedBugTests {
  @Test("every planted bug has a suite that must find it, and is planted somewhere") func everyBugIsHunted() throws {
    let path = "Sources/PrismProtocol/Testing/PlantedBug.swift"
    let source = try #require(SourceTree.read(path))
    let bugs = source.split(separator: "\n").filter { $0.hasPrefix("  case ") }
      .flatMap { $0.dropFirst(7).split(separator: ", ").map(String.init) }
    try #require(bugs.count >= 12)
    let runner = try #require(SourceTree.read("scripts/mutants"))
    let page = try #require(SourceTree.read("docs/reliability.md"))
    for bug in bugs {
      #expect(page.contains("| `\(bug)` |"), "docs/reliability.md doesn't list \(bug)")
      #expect(runner.contains(try Regex("(?m)^\(bug) +[A-Z]")), "scripts/mutants doesn't know \(bug)")
      #expect(SourceTree.sources.contains { $0.code.contains("PlantedBug.\(bug).isPlanted") }, "\(bug) is nowhere")
    }
  }
}
