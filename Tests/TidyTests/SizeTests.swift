import Testing

@Suite struct SizeTests {
  @Test("a file is one type: at most 500 lines", arguments: ["Sources", "Tests"])
  func filesAreShort(folder: String) {
    for file in SourceTree.files(in: folder) { #expect(file.lines.count <= 501, "\(file)") }
  }

  @Test("a function, a computed property or a closure fits a screen: none above 60 lines, nine of ten within 25")
  func functionsAreShort() throws {
    var lengths: [Int] = []
    for file in SourceTree.sources {
      let code = file.code
      lengths += SwiftCode.functions(in: code).map(\.lineCount)
      for body in SwiftCode.functions(in: code) + SwiftCode.properties(in: code) {
        #expect(body.lineCount <= 60, "\(file):\(body.line)")
      }
    }
    lengths.sort()
    try #require(lengths.count > 100, "the functions were not found")
    #expect(lengths[lengths.count * 9 / 10] <= 25)
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
