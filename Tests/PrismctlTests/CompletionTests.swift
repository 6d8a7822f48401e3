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

  /// The words that every shell must offer.
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

  /// Names that the daemon knows, as the stub of `prismctl` below answers them.
  private static let names: [(String, [String])] = [
    ("prismctl explain ", ["prism", "shop"]),
    ("prismctl explain s", ["shop"]),
    ("prismctl --control /run/x explain ", ["elsewhere"]),
    ("prismctl flush ", ["prism", "shop"]),
    ("prismctl explain shop o", ["order"]),
    ("prismctl trace of-", ["of-one", "of-two"]),
    ("prismctl send --report-id of-o", ["of-one"]),
    ("prismctl send --namespace ", ["prism", "shop"]),
    ("prismctl dead show ", ["seven"]),
  ]

  private static let stub = """
    #!/bin/sh
    [ "$1" = __complete ] || exit 64
    kind=$2
    shift 2
    case "$*" in *"--control /run/x"*) [ "$kind" != namespaces ] || exec echo elsewhere ;; esac
    case $kind in
    namespaces) printf 'prism\\nshop\\n' ;;
    types) printf 'order\\nvisit\\n' ;;
    report-ids) printf 'of-one\\nof-two\\nanother\\n' ;;
    dead-ids) echo seven ;;
    *) exit 64 ;;
    esac
    """

  /// The words that a shell offers after `line`, with the stub as `prismctl`. Of files the last part of their path.
  private static func offers(_ shell: String, after line: String) throws -> Set<String> {
    let folder = TemporaryFolder()
    try folder.write(stub, to: "prismctl")
    try folder.write(["bash": table.bash, "zsh": table.zsh, "fish": table.fish][shell] ?? "", to: "completion")
    try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: folder("prismctl"))
    let path = "PATH=\(folder.path)\(":")\(ProcessInfo.processInfo.environment["PATH"] ?? "")"
    let ask: [String: [String]] = [
      "bash": ["bash", "-c", bashProbe(line), "bash"],
      "fish": ["fish", "--no-config", "-c", "source $argv[1]; complete -C $argv[2]"], "zsh": ["zsh", "-f", zshProbe],
    ]
    let answer = try Tool("env", [path] + (ask[shell] ?? []) + [folder("completion"), line])
    let words = answer.lines.map { String($0.split(separator: "\t").first ?? "") }.filter { !$0.isEmpty }
    return Set(words.map { String($0.split(separator: "/").last ?? "") })
  }

  private static func bashProbe(_ line: String) -> String {
    let words = line.split(separator: " ").map { "'\($0)'" } + (line.hasSuffix(" ") ? ["''"] : [])
    return """
      source "$1"; compopt() { :; }; COMP_WORDS=(\(words.joined(separator: " "))); COMP_CWORD=\(words.count - 1)
      _prismctl; printf '%s\\n' "${COMPREPLY[@]}"
      """
  }

  @Test("namespaces, types, report ids and dead letters are the daemon's", arguments: ["bash", "zsh", "fish"], names)
  func daemonsNames(shell: String, asked: (line: String, expected: [String])) throws {
    #expect(try Self.offers(shell, after: asked.line) == Set(asked.expected), "\(asked.line)")
  }

  @Test("of files a key's option is offered keys, and folders on the way to them", arguments: ["bash", "zsh", "fish"])
  func keyFiles(shell: String) throws {
    let folder = TemporaryFolder()
    try FileManager.default.createDirectory(atPath: folder("keys"), withIntermediateDirectories: false)
    for name in ["main.key", "other.txt"] { try folder.write("", to: name) }
    #expect(try Self.offers(shell, after: "prismctl decode --key \(folder.path)/") == ["main.key", "keys"])
  }

  private static let zshProbe = HeldFile.root.appending(path: "Tests/PrismctlTests/complete.zsh").path

  @Test("an option's name takes the same kind of value in each command")
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
