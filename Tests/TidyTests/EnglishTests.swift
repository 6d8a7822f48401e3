import Testing

/// Pages, manual pages, help, messages and comments keep the rules of plain English that `LanguageRules` lists.
@Suite struct EnglishTests {
  /// Faults that stay, each with its reason.
  private static let exceptions: [(path: String, text: String, reason: String)] = [
    (
      "Tests/PrismConfigTests/Showing/SnapshotDiffTests.swift", "\"none\"",
      "`KEY none -> VALUE` is what `config diff` prints for a key that had no value"
    ),
    (
      "Tests/PrismCollectorTests/CollectorFileTests.swift", "\"none\"",
      "`compress: none` is a setting of the collector's file"
    ),
  ]

  @Test("the text is plain English", arguments: EnglishAreas.all) func isPlain(area: EnglishAreas.Area) {
    let faults = area.faults.filter { fault in
      !Self.exceptions.contains { $0.path == fault.path && fault.text.contains($0.text) }
    }
    #expect(faults.isEmpty, "\(area.name): \(faults.map(\.description).joined(separator: "\n"))")
  }

  @Test("a type has the glossary's word in its name") func typesAreNamed() {
    let declaration = /\b(?:struct|class|enum|actor|protocol|typealias) ([A-Z][A-Za-z]+)/
    for file in SourceTree.sources {
      for match in file.code.matches(of: declaration) {
        let faults = LanguageRules.faults(inName: match.output.1)
        #expect(faults.isEmpty, "\(file): \(faults)")
      }
    }
    #expect(LanguageRules.faults(inName: "RemoteDesk").count == 1)
    #expect(LanguageRules.faults(inName: "DeskTop").count == 1)
    #expect(LanguageRules.faults(inName: "Desktop").isEmpty)
  }

  @Test("an exception is still needed, and has a reason") func exceptionsAreUsed() {
    let faults = EnglishAreas.all.flatMap(\.faults)
    for exception in Self.exceptions {
      #expect(!exception.reason.isEmpty)
      #expect(faults.contains { $0.path == exception.path && $0.text.contains(exception.text) }, "\(exception)")
    }
  }

  @Test(
    "a rule finds its faults",
    arguments: [
      ("Whoever hung up is no news.", 2), ("What was claimed is built.", 1), ("What was claimed?", 0),
      ("The value is `none`.", 0), ("Default: none.", 0), ("There are none.", 1), ("It stands at twice the size.", 1),
      ("So many became dead letters.", 1), ("The client is told, e.g. by a 413.", 1), ("A whole sentence.", 0),
      (Array(repeating: "word", count: 31).joined(separator: " ") + ".", 1),
    ])
  func rulesFind(text: String, count: Int) {
    #expect(LanguageRules.faults(in: [Prose.Passage(line: 1, text: text)], path: "page").count == count)
  }

  @Test("a page is read without its code, cell by cell, and by items") func pagesAreRead() {
    let page = """
      # A heading
      One [link](target.md) and `code`. Two
      lines.
      ```sh
      whoever
      ```
      | none | a cell |
      - an item
      - another
      """
    let texts = Prose.page(page).map(\.text)
    #expect(
      texts == [" A heading", "One link and `code`. Two\nlines.", " none ", " a cell ", "- an item", "- another"])
    let words = Prose.sentences(of: Prose.page(page)).map(\.words)
    #expect(words[1] == ["one", "link", "and", "code"])
    #expect(words[2] == ["two", "lines"])
  }

  @Test("comments and literals of Swift are read apart from the code") func swiftIsRead() {
    let code = """
      /// One comment
      /// of two lines.
      let text = "a value \\(name(1)) in text", short = "two words"
      """
    #expect(Prose.lineComments(code, mark: "//").map(\.text) == ["One comment\nof two lines."])
    #expect(Prose.literals(code).map(\.text) == ["a value code in text"])
  }

  @Test("a manual page is read without its requests") func manualsAreRead() {
    let page = """
      .Sh NAME
      Uses
      .Xr prismd 8 .
      A socket, and
      .Cm status .
      .It Fl -json
      One \\- document.
      .Dl prismctl whoever
      """
    #expect(
      Prose.manual(page).map(\.text) == ["Uses\n`operands`.\nA socket, and\n`operands`.", "One - document."])
  }
}
