import Testing

@Suite struct SizeTests {
  @Test("a file is one type: at most 350 lines, a test's at most 450", arguments: [("Sources", 350), ("Tests", 450)])
  func filesAreShort(folder: String, linesMax: Int) {
    for file in SourceTree.files(in: folder) { #expect(file.lines.count <= linesMax + 1, "\(file)") }
  }

  @Test("a function, a computed property or a closure fits a screen: none above 50 lines, nine of ten within 18")
  func functionsAreShort() throws {
    var lengths: [Int] = []
    for file in SourceTree.sources {
      let code = file.code
      lengths += SwiftCode.functions(in: code).map(\.lineCount)
      for body in SwiftCode.functions(in: code) + SwiftCode.properties(in: code) {
        #expect(body.lineCount <= 50, "\(file):\(body.line)")
      }
    }
    lengths.sort()
    try #require(lengths.count > 100, "the functions were not found")
    #expect(lengths[lengths.count * 9 / 10] <= 18)
  }

  @Test("code has at most 120 columns, texts and comments apart", arguments: ["Sources", "Tests"])
  func linesAreShort(folder: String) {
    for file in SourceTree.files(in: folder) {
      for (index, line) in file.code.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
        #expect(line.count <= 120, "\(file):\(index + 1)")
      }
    }
  }
}
