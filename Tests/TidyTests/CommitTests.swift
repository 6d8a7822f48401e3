import Foundation
import Testing

@Suite struct CommitTests {
  /// The last commit before the rule.
  private static let start = "83f11d4d"

  @Test("a commit's subject is `area: summary` in at most 72 characters") func subjects() throws {
    // A shallow clone does not have them all.
    guard try git("cat-file", "-e", Self.start + "^{commit}") != nil else { return }
    let log = try #require(try git("log", "--no-merges", "--format=%h %s", "\(Self.start)..HEAD"))
    for line in log.split(separator: "\n") {
      let subject = line.drop { $0 != " " }.dropFirst()
      #expect(subject.count <= 72, "\(line): \(subject.count) characters")
      #expect(subject.contains(/^[a-z][\w,. \/-]*: \S/), "\(line): it needs an area")
    }
  }

  /// - Returns: what git prints; nil if it fails.
  private func git(_ arguments: String...) throws -> String? {
    let (program, pipe) = (Process(), Pipe())
    program.executableURL = URL(filePath: "/usr/bin/env")
    program.arguments = ["git", "-C", SourceTree.root] + arguments
    program.standardOutput = pipe
    program.standardError = FileHandle.nullDevice
    try program.run()
    let output = pipe.fileHandleForReading.readDataToEndOfFile()
    program.waitUntilExit()
    return program.terminationStatus == 0 ? String(decoding: output, as: UTF8.self) : nil
  }
}
