import Foundation
import PrismBase
import PrismTestSupport
import Testing

@testable import prism_collector
@testable import prismctl

/// The completions as their shells take them: each is asked what may follow a line.
@Suite("Completions")
struct CompletionTests {
  @Test("a shell reads its completion without a complaint", arguments: ShellCompletion.allCases)
  func syntax(shell: ShellCompletion) throws {
    let file = try Scratch(shell.script(of: "prismctl"))
    let checked = try Tool(shell.rawValue, ["-n", file.path])
    #expect(checked.exitCode == 0 && checked.output.isEmpty, "\(checked.output)")
  }

  /// The words that may follow a line. Those of the daemon are as `names` answers them.
  private static let lines: [(String, [String])] = [
    ("prismctl ", Array(Set(commands.compactMap(\.words.first)))),
    ("prismctl fl", ["flush"]),
    ("prismctl dead ", ["list", "show", "requeue", "drop"]),
    ("prismctl --control /run/x dead l", ["list"]),
    ("prismctl completion ", ["bash", "zsh", "fish"]),
    ("prismctl export --kind ", ["meta", "payload"]),
    ("prismctl export --namespace shop --kind m", ["meta"]),
    ("prismctl dead drop --a", ["--all"]),
    ("prismctl explain ", ["prism", "shop"]),
    ("prismctl explain s", ["shop"]),
    ("prismctl flush ", ["prism", "shop"]),
    ("prismctl explain shop o", ["order"]),
    ("prismctl trace of-", ["of-one", "of-two"]),
    ("prismctl send --report-id of-o", ["of-one"]),
    ("prismctl send --namespace ", ["prism", "shop"]),
    ("prismctl dead show ", ["seven"]),
  ]

  private static func names(_ placeholder: String) -> [String] {
    switch placeholder {
    case "NAMESPACE", "N": ["prism", "shop"]
    case "TYPE", "T": ["order", "visit"]
    case "REPORT_ID": ["of-one", "of-two", "another"]
    case "ID": ["seven"]
    default: []
    }
  }

  /// As readline splits it, without the program's name; the word under the cursor may be empty.
  private static func words(_ line: String) -> [String] {
    line.split(separator: " ").dropFirst().map(String.init) + (line.hasSuffix(" ") ? [""] : [])
  }

  @Test("the words that may follow are those of the commands", arguments: lines)
  @MainActor func suggestions(line: String, expected: [String]) {
    let words = Self.words(line)
    let found = Suggestions(words, of: prismctl.program, names: Self.names).lines.map {
      String($0.split(separator: "\t")[0])
    }
    #expect(Set(found.filter { $0.hasPrefix(words.last ?? "") }) == Set(expected))
  }

  @Test(
    "a value may follow its option with a =, which a shell may split off",
    arguments: [
      (["export", "--kind=p"], ["--kind=meta", "--kind=payload"]),
      (["export", "--kind", "=", "p"], ["meta", "payload"]),
      (["export", "--kind", ""], ["meta", "payload"]), (["decode", "--key", ""], [":keys"]),
      (["decode", "--key=k", "--headers", "h", ""], [":files"]), (["carry", "--to", ""], [":folders"]),
      (["nothing", "such"], []), (["send", "--type", "t", "--meta", ""], []), (["dead", "show", "1", ""], []), ([], []),
    ])
  @MainActor func values(line: [String], expected: [String]) {
    let found = Suggestions(line, of: prismctl.program, names: Self.names).lines
    #expect(line.isEmpty ? found.contains { $0.hasPrefix("flush\t") } : found == expected)
  }

  /// The words that a shell offers after `line`, where `prismctl` answers `answer` to just this line. Of files the last
  /// part of their path.
  @MainActor private static func offers(_ shell: ShellCompletion, after line: String) throws -> Set<String> {
    let folder = TemporaryFolder()
    let asked = (["__complete"] + words(line)).map { "[\($0)]" }.joined()
    try folder.write(
      Suggestions(words(line), of: prismctl.program, names: names).lines.map { "\($0)\n" }.joined(), to: "answer")
    try folder.write(
      "#!/bin/sh\n[ \"$(printf '[%s]' \"$@\")\" = '\(asked)' ] && exec cat '\(folder("answer"))'\nexit 64\n",
      to: "prismctl")
    try folder.write(shell.script(of: "prismctl"), to: "completion")
    try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: folder("prismctl"))
    let path = "PATH=\(folder.path)\(":")\(ProcessInfo.processInfo.environment["PATH"] ?? "")"
    let ask: [String] =
      switch shell {
      case .bash: ["bash", "-c", bashProbe(line), "bash"]
      case .fish: ["fish", "--no-config", "-c", "source $argv[1]; complete -C $argv[2]"]
      case .zsh: ["zsh", "-f", HeldFile.root.appending(path: "Tests/PrismctlTests/complete.zsh").path]
      }
    let answer = try Tool("env", [path] + ask + [folder("completion"), line])
    let found = answer.lines.map { String($0.split(separator: "\t").first ?? "") }.filter { !$0.isEmpty }
    return Set(found.map { String($0.split(separator: "/").last ?? "") })
  }

  private static func bashProbe(_ line: String) -> String {
    let words = ["prismctl"] + words(line)
    return """
      source "$1"; compopt() { :; }; COMP_WORDS=(\(words.map { "'\($0)'" }.joined(separator: " ")))
      COMP_CWORD=\(words.count - 1); _prismctl; printf '%s\\n' "${COMPREPLY[@]}"
      """
  }

  @Test("each shell offers what prismctl answers to its line", arguments: ShellCompletion.allCases, lines)
  @MainActor func shells(shell: ShellCompletion, asked: (line: String, expected: [String])) throws {
    #expect(try Self.offers(shell, after: asked.line) == Set(asked.expected), "\(asked.line)")
  }

  @Test("of files a key's option is offered keys, and folders on the way to them", arguments: ShellCompletion.allCases)
  @MainActor func keyFiles(shell: ShellCompletion) throws {
    let folder = TemporaryFolder()
    try FileManager.default.createDirectory(atPath: folder("keys"), withIntermediateDirectories: false)
    for name in ["main.key", "other.txt"] { try folder.write("", to: name) }
    #expect(try Self.offers(shell, after: "prismctl decode --key \(folder.path)/") == ["main.key", "keys"])
  }

  @Test(
    "prism-collector has a completion of its own",
    arguments: [
      (["devi"], "device\tfind, tag, list, show"), (["device", "re"], "revoke\tanswer its packets 403"),
      (["--config", ""], ":files"), (["check", "--config", "c.yaml", "--st"], "--state\tthe folder of the database"),
      (["completion", ""], "bash"), (["import", ""], ":folders"),
    ])
  func collector(line: [String], first: String) throws {
    #expect(Suggestions(line, of: prism_collector.program).lines.contains { $0.hasPrefix(first) })
    let script = try Tool(Tool.built("prism-collector"), ["completion", "bash"]).output
    #expect(script.contains("complete -F _prism_collector prism-collector") && !script.contains("PROGRAM"))
  }

  @Test(
    "an option's name takes the same kind of value in each command",
    arguments: [prismctl.program, prism_collector.program])
  func optionsAgree(program: PrismBase.Program) {
    var kinds: [String: Suggestions.Value?] = [:]
    for option in program.options + program.commands.flatMap(\.allOptions) {
      var kind = option.value.map { Suggestions.Value(placeholder: $0) }
      if case .named(let placeholder) = kind, Self.names(placeholder).isEmpty { kind = .named("") }
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
