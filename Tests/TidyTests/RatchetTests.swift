import Foundation
import Testing

/// Figures of the sources that may fall and never rise. A change that lets one fall lowers its number here.
@Suite struct RatchetTests {
  private static let linesMax = 102_136

  /// Folders of one module that name each other's types: such a pair can't be read, moved or tested apart.
  private static let circlesMax = 0
  /// Functions that look over the shoulder of the actor whose state they change.
  private static let isolatedParametersMax = 0
  /// Files that are too small to be looked for.
  private static let smallFilesMax = 16

  @Test("the sources don't grow") func lines() throws {
    let paths = [".swift", ".c", ".h"].flatMap { SourceTree.paths(under: "Sources", ending: $0) }
    let lines = try paths.reduce(0) {
      $0 + (try #require(SourceTree.read($1))).split(separator: "\n", omittingEmptySubsequences: false).count - 1
    }
    #expect(lines <= Self.linesMax && lines > Self.linesMax - 1000, "\(lines): lower the number")
  }

  @Test("no more folders of a module name each other") func circles() {
    let circles = SourceTree.modules.flatMap { Self.circles(in: SourceTree.sources(of: $0)) }
    #expect(circles.count == Self.circlesMax, "\(circles.sorted().joined(separator: "\n"))")
  }

  @Test("no more functions take an actor's isolation") func isolated() {
    let count = SourceTree.sources.reduce(0) { $0 + $1.code.matches(of: /isolated [A-Z]\w*[,)]/).count }
    #expect(count == Self.isolatedParametersMax)
  }

  /// Words, and what is instead of them.
  private static let faulty = [
    // Swift 6.3 reads a part of a large struct that this yields after the struct's memory is free: prismd ended by it.
    ("_read {", "a getter"),
    // Loses signals.
    ("makeSignalSource", "prism_take_signals"),
  ]

  @Test("nothing is used that fails on Linux", arguments: faulty) func fails(word: String, instead: String) {
    let users = SourceTree.sources.filter { $0.code.contains(word) }.map(\.path)
    #expect(users.isEmpty, "\(users): \(instead)")
  }

  @Test("no more files of at most 20 lines") func smallFiles() {
    let small = SourceTree.sources.count { $0.lines.count - 1 <= 20 }
    #expect(small == Self.smallFilesMax)
  }

  @Test("a row kind says what it can do: nothing asks whether it is records") func kinds() {
    let places = SourceTree.sources.filter { $0.code.contains("== .records") }
    #expect(places.isEmpty, "\(places)")
  }

  // MARK: Circles

  private static func folder(_ file: SourceTree.File) -> Substring {
    file.path[..<(file.path.lastIndex(of: "/") ?? file.path.startIndex)]
  }

  /// `A and B` each. A module's own folder names what is in it, and is none of them.
  private static func circles(in files: [SourceTree.File]) -> [String] {
    var declared: [Substring: Set<Substring>] = [:]
    for file in files { declared[folder(file), default: []].formUnion(types(in: file.code)) }
    var named: [Substring: Set<Substring>] = [:]
    for file in files {
      let words = Set(file.code.matches(of: /\b[A-Z]\w+/).map(\.output))
      for (other, types) in declared where other != folder(file) && !types.isDisjoint(with: words) {
        named[folder(file), default: []].insert(other)
      }
    }
    let rooms = named.keys.filter { $0.split(separator: "/").count > 2 }.sorted()
    return rooms.flatMap { one in
      rooms.filter { one < $0 && named[one]?.contains($0) == true && named[$0]?.contains(one) == true }
        .map { "\(one) and \($0)" }
    }
  }

  /// Of the file's outermost level.
  private static func types(in code: String) -> [Substring] {
    code.split(separator: "\n").filter { $0.first != " " }.compactMap { line in
      let words = line.split(separator: " ").drop {
        ["public", "package", "final", "indirect", "nonisolated"].contains($0)
      }
      guard let first = words.first, ["struct", "class", "enum", "actor", "protocol", "typealias"].contains(first)
      else { return nil }
      return words.dropFirst().first?.prefix { $0.isLetter || $0.isNumber || $0 == "_" }
    }
  }
}
