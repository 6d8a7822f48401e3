import Foundation
import Testing

@Suite struct MutantTests {
  private static let mutants = SourceTree.paths(under: "Tests/Mutants", ending: ".patch")
  private static let extensions = SourceTree.paths(under: "Tests/Extending", ending: ".patch")
  private static let patches = mutants + extensions

  @Test("there are at least as many mutants as there were") func mutantsStay() { #expect(Self.mutants.count >= 18) }

  @Test("a mutant applies to one place only", arguments: patches) func applies(path: String) throws {
    let patch = try #require(MutantPatch(path))
    try #require(!patch.hunks.isEmpty, "\(path) changes nothing")
    for hunk in patch.hunks {
      let text = try #require(SourceTree.read(hunk.file), "\(path): there is no \(hunk.file)")
      let places = text.components(separatedBy: "\n" + hunk.before).count - 1
      #expect(places == 1, "\(path) matches \(places) places in \(hunk.file); adapt it to the code as it is now")
    }
  }

  @Test("a mutant says what it breaks, and is on only under its own name", arguments: patches)
  func isDescribed(path: String) throws {
    let patch = try #require(MutantPatch(path))
    let rule = Self.extensions.contains(path) ? "adds" : "breaks"
    #expect(patch.head[rule]?.hasSuffix(".") == true, "\(path) needs a line `\(rule): RULE.`")
    let guards = patch.added.matches(of: /Mutant\.isActive\("(\w+)"\)|getenv\("PRISM_MUTANT"\)/)
    #expect(!guards.isEmpty, "\(path) needs Mutant.isActive")
    for name in guards.compactMap(\.output.1) { #expect(name == patch.name, "\(path) asks for \(name)") }
  }

  @Test("the suite that judges a patch exists", arguments: patches) func suiteExists(path: String) throws {
    let field = Self.extensions.contains(path) ? "passes" : "killed by"
    let suite = try #require(MutantPatch(path)?.head[field], "\(path) needs a line `\(field): SUITE`")
    for part in suite.split(separator: "/") {
      let declaration = try Regex("\\b(?:struct|enum|extension|class|func) [\\w.]*\(part)")
      #expect(SourceTree.tests.contains { $0.code.contains(declaration) }, "\(path): no test has \(part) in its name")
    }
  }

  /// In one stream: git checks each file of several against the sources alone.
  @Test("all mutants apply together") func allApply() throws {
    let (git, patches) = (Process(), Pipe())
    git.executableURL = URL(filePath: "/usr/bin/env")
    git.arguments = ["git", "-C", SourceTree.root, "apply", "--check", "-"]
    git.standardInput = patches
    try git.run()
    for path in Self.patches {
      try patches.fileHandleForWriting.write(contentsOf: Data(#require(SourceTree.read(path)).utf8))
    }
    try patches.fileHandleForWriting.close()
    git.waitUntilExit()
    #expect(git.terminationStatus == 0, "git apply names the patch")
  }
}
