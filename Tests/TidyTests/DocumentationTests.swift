import Testing

/// The share of public declarations with a doc comment: 95 % in each module.
@Suite struct DocumentationTests {
  @Test("a public declaration says what it is: 95 of 100 in each module", arguments: SourceTree.modules.sorted())
  func publicDeclarationsAreDocumented(module: String) {
    let files = SourceTree.sources(of: module).map { (path: $0.path, found: PublicDeclarations.all(in: $0.text)) }
    let missing = files.flatMap { file in
      file.found.filter { !$0.isDocumented }.map { "\(file.path):\($0)" }
    }
    let count = files.reduce(0) { $0 + $1.found.count }
    #expect(missing.count <= count / 20, "of \(count): \(missing.joined(separator: "\n"))")
  }

  @Test("public declarations are found with their comments, beyond attributes") func declarationsAreFound() {
    let text = """
      /// The name.
      public let name: String
      public private(set) var count = 0
      /// Sends.
      @discardableResult
      public func send() -> Bool { true }
      public init(name: String) {}
      public static func parse(_ text: String) -> Self? { nil }
      let hidden = 1
      """
    let found = PublicDeclarations.all(in: text)
    #expect(found.map(\.line) == [2, 3, 6, 8])
    #expect(found.map(\.isDocumented) == [true, false, true, false])
  }
}
