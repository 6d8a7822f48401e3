import Testing

@Suite("Ports of the pages")
struct PortTests {
  @Test("the pages use the ports of docs/operating.md, and no others")
  func ports() throws {
    let text = try #require(SourceTree.read("docs/operating.md"))
    let table = try #require(text.split(separator: "The pages use these ports, and no others:\n\n").last)
    var known: Set<Int> = []
    for row in table.prefix(upTo: table.firstRange(of: "\n\n")?.lowerBound ?? table.endIndex).split(separator: "\n") {
      let numbers = row.matches(of: /\b[0-9]{4,5}\b/).compactMap { Int($0.output) }
      known.formUnion(row.contains(" to ") ? Array(numbers[0]...numbers[1]) : numbers)
    }
    #expect(known.count > 8)
    for page in ["README.md"] + SourceTree.paths(under: "docs", ending: ".md")
      + SourceTree.paths(under: "config", ending: ".yaml")
    {
      for match in try #require(SourceTree.read(page)).matches(of: /(?:localhost|example|\d|\*):([0-9]{4,5})\b(?!:)/) {
        guard let port = Int(match.1), port < 65_536 else { continue }
        #expect(known.contains(port), "\(page): \(match.0)")
      }
    }
  }
}
