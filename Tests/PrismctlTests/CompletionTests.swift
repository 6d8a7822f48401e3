import Foundation
import PrismBase
import PrismTestSupport
import Testing

@testable import prismctl

/// The completions as their shells take them: each is asked what may follow a line.
@Suite("Completions")
struct CompletionTests {
  private static let table = CompletionTable(commands: commands)

  @Test("a shell reads its completion without a complaint", arguments: ["bash", "zsh", "fish"])
  func syntax(shell: String) throws {
    let file = try Scratch(["bash": Self.table.bash, "zsh": Self.table.zsh, "fish": Self.table.fish][shell] ?? "(")
    let checked = try Tool(shell, ["-n", file.path])
    #expect(checked.exitCode == 0 && checked.output.isEmpty, "\(checked.output)")
  }

  @Test("bash, with a space or a = before the value", arguments: lines + [("prismctl export --kind=p", ["payload"])])
  func bash(line: String, expected: [String]) throws {
    let file = try Scratch(Self.table.bash)
    // As readline splits it: a `=` is a word of its own, and the word under the cursor may be empty.
    let words =
      line.replacing("=", with: " = ").split(separator: " ", omittingEmptySubsequences: false)
      .filter { $0 != "" } + (line.hasSuffix(" ") ? [""] : [])
    let quoted = words.map { "'\($0)'" }.joined(separator: " ")
    let script = """
      source "$1"; COMP_WORDS=(\(quoted)); COMP_CWORD=\(words.count - 1); _prismctl; printf '%s\\n' "${COMPREPLY[@]}"
      """
    #expect(Set(try Tool("bash", ["-c", script, "bash", file.path]).lines) == Set(expected))
  }

  @Test("fish", arguments: lines)
  func fish(line: String, expected: [String]) throws {
    let file = try Scratch(Self.table.fish)
    let answer = try Tool("fish", ["--no-config", "-c", "source $argv[1]; complete -C $argv[2]", file.path, line])
    let words = answer.lines.map { String($0.split(separator: "\t").first ?? "") }
    #expect(Set(words) == Set(expected), "\(answer.output)")
  }

  @Test("zsh", arguments: lines)
  func zsh(line: String, expected: [String]) throws {
    let file = try Scratch(Self.table.zsh)
    let answer = try Tool("zsh", ["-f", Self.zshProbe, file.path, line])
    #expect(answer.exitCode == 0 && Set(answer.lines) == Set(expected), "\(answer.output)")
  }

  /// What every shell must offer.
  private static let lines: [(String, [String])] = [
    ("prismctl ", Array(Set(commands.compactMap(\.words.first)))),
    ("prismctl fl", ["flush"]),
    ("prismctl dead ", ["list", "show", "requeue", "drop"]),
    ("prismctl --control /run/x dead l", ["list"]),
    ("prismctl completion ", ["bash", "zsh", "fish"]),
    ("prismctl export --kind ", ["meta", "payload"]),
    ("prismctl export --namespace shop --kind m", ["meta"]),
    ("prismctl dead drop --a", ["--all"]),
  ]

  private static let zshProbe = HeldFile.root.appending(path: "Tests/PrismctlTests/complete.zsh").path

  @Test("an option's name takes the same kind of value wherever it stands")
  func optionsAgree() {
    var kinds: [String: CompletionTable.Value?] = [:]
    for option in commands.flatMap(Self.table.options) {
      let kind = option.value.map { CompletionTable.Value(placeholder: $0) }
      #expect(kinds.updateValue(kind, forKey: option.name).map { $0 == kind } ?? true, "\(option.name)")
    }
  }
}

/// A file for the length of a test.
final class Scratch {
  private let folder = TemporaryFolder()
  var path: String { folder("text") }
  init(_ text: String) throws { try folder.write(text, to: "text") }
}
