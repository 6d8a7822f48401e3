import Testing

@Suite struct SwiftCodeTests {
  @Test(
    "comments and texts are no code, interpolations are",
    arguments: [
      ("let a = 1 // b", "let a = 1 "), ("a /* b */ c", "a */ c"), (#"x = "a // b" + c"#, #"x = "" + c"#),
      (#"x = "a\"b" + c"#, #"x = "" + c"#), (#"x = "a\(f("b")) c" + d"#, #"x = "f("")" + d"#),
      (##"x = #"a" \(b)"# + c"##, #"x = "" + c"#), ("x = \"\"\"\na \"q\"\nb\n\"\"\" + c", "x = \"\n\n\n\" + c"),
    ]) func code(text: String, expected: String)
  {
    #expect(SwiftCode.withoutTextAndComments(text) == expected)
  }

  @Test(
    "a function's length is its lines from its name to its closing brace",
    arguments: [
      ("func a() { b }", [1]), ("func a(\n  b: Int = c { 1 }\n) -> Int\n{\n  1\n}\n", [6]),
      ("protocol P {\n  func a()\n  func b() -> Int\n}\nstruct S { let c = { 1 } }", []),
      ("struct S {\n  init() {\n  }\n  deinit {\n    x\n  }\n}", [2, 3]),
      ("public func a() {\n  func b() {\n  }\n}", [4, 2]),
    ]) func functions(code: String, lineCounts: [Int])
  {
    #expect(SwiftCode.functions(in: code).map(\.lineCount) == lineCounts)
  }

  @Test(
    "a property's length is that of its braces: computed, observed, or a closure",
    arguments: [
      ("var a: Int {\n  1\n}", [3]), ("let a = 1\nvar b: Int", []), ("static let a: () -> Int = {\n  1\n}", [3]),
      ("var a = 1 {\n  didSet {\n  }\n}", [4]), ("let a = b(\n  1)", []),
    ]) func properties(code: String, lineCounts: [Int])
  {
    #expect(SwiftCode.properties(in: code).map(\.lineCount) == lineCounts)
  }
}
