import Foundation
import PrismBase
import Testing

@testable import prism_collector
@testable import prismctl

@Suite("Manual pages")
struct ManualTests {
  @Test(
    "a program's page has every command with its options, operands and example",
    arguments: [("prismctl.1", prismctl.program), ("prism-collector.8", prism_collector.program)])
  func commandPages(page: String, program: Program) throws {
    let before = [nil] + program.commands.map(Optional.some)
    let expected = zip(program.commands, before).map(Self.entry).joined()
    let part = try HeldFile.part(
      of: "docs/man/\(page)", after: ".\\\" commands: held to the code by a test", regeneratedAs: expected)
    #expect(part == expected)
  }

  @Test(
    "a program's page has every option and exit code of its --help",
    arguments: [("prismd", "prismd.8"), ("prism-collector", "prism-collector.8")])
  func flagPages(program: String, page: String) throws {
    let help = try Tool(Tool.built(program), ["--help"]).output
    let text = try HeldFile.text("docs/man/\(page)")
    let options = Set(help.matches(of: /(?m)^  (?:-h, )?--([a-z-]+)/).map { String($0.1) })
    let codes = Set(try #require(help.split(separator: "Exit codes").last).matches(of: /(?m)^  ([0-9]+)/).map(\.1))
    try #require(!options.isEmpty && codes.count >= 4)
    for option in options { #expect(text.contains("\n.It Fl -\(option)"), "--\(option)") }
    for code in codes { #expect(text.contains("\n.It \(code)\n"), "exit code \(code)") }
  }

  @Test("mandoc finds nothing wrong", arguments: ["prismctl.1", "prismd.8", "prism-collector.8", "prismd.yaml.5"])
  func lint(page: String) throws {
    let path = HeldFile.root.appending(path: "docs/man/\(page)").path
    let found = try Tool("mandoc", ["-Tlint", "-Wwarning", path])
    #expect(found.exitCode == 0, "\(found.output)")
  }

  /// - Parameter before: the command before it, whose options may be its own.
  private static func entry(_ command: Command, before: Command?) -> String {
    let operands = command.operands.map { operand in
      operand.hasPrefix("[") ? " Op Ar \(text(String(operand.dropFirst().dropLast())))" : " Ar \(text(operand))"
    }
    var lines = [".It Cm \(command.name)\(operands.joined())", sentence(command.summary)]
    if !command.details.isEmpty {
      lines += [".Bd -unfilled -compact"] + command.details.split(separator: "\n").map { text(String($0)) } + [".Ed"]
    }
    if let before, before.words[0] == command.words[0], before.options == command.options, !command.options.isEmpty {
      lines.append("It has the options of the command before.")
    } else if !command.options.isEmpty {
      lines.append(".Bl -tag -width Ds -compact")
      for option in command.options {
        lines.append(".It Fl \(text("-" + option.name.dropFirst(2)))" + (option.value.map { " Ar \(text($0))" } ?? ""))
        lines.append(sentence(option.help.replacing("\n", with: " ")))
      }
      lines.append(".El")
    }
    if let example = command.example { lines += [".Pp", ".Dl \(text(example))"] }
    return lines.joined(separator: "\n") + "\n"
  }

  private static func sentence(_ words: String) -> String {
    text(words.prefix(1).uppercased() + words.dropFirst()) + "."
  }

  /// As mdoc(7) takes it: no escapes, no request at the start of a line.
  private static func text(_ words: String) -> String {
    let escaped = words.replacing("\\", with: "\\e").replacing("`", with: "\\(ga").replacing("|", with: "\\*(Ba")
      .replacing("\"", with: "\\(dq")
    return escaped.hasPrefix(".") || escaped.hasPrefix("'") ? "\\&" + escaped : escaped
  }
}
