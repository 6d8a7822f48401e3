import PrismBase
import Testing

@Suite("A program's command line")
struct ProgramTests {
  private static let json = ArgumentOption("--json", nil, "as JSON")
  private static let work = Command.Work.later { _ in 0 }

  /// With a `root` it does something without a command, and its options are those of every command.
  private static func program(root: String?) -> Program {
    Program(
      "tool", version: "tool 1",
      commands: [
        Command("check", "look", work: work),
        Command("dead list", "all", options: [json], example: "tool dead list", work: work),
        Command("dead drop", "one\nMore of it.", operands: ["ID", "[MORE...]"], work: work),
        Command(
          "copy", "copy", operands: ["FROM", "[TO]"], options: [ArgumentOption("--mode", "M", "the mode")], work: work),
      ], root: root, options: [ArgumentOption("--config", "PATH", "the file")],
      exitCodes: [(0, "done")])
  }

  private static func read(_ line: String, root: String? = nil) throws(Failure) -> String? {
    let line = try program(root: root).read(line.split(separator: " ").map(String.init))
    return line.map { line in
      let given = line.given.map { $0.name + ($0.value.map { "=" + $0 } ?? "") }
      return ([line.command.name] + line.operands + given).joined(separator: " ")
    }
  }

  @Test(
    "the command of the most words is found, also with options before its words and between them",
    arguments: [
      ("check", "check"), ("--config check check", "check --config=check"), ("dead list --json", "dead list --json"),
      ("dead --json list", "dead list --json"), ("dead drop 1 2 3", "dead drop 1 2 3"),
      ("copy --mode check a", "copy a --mode=check"), ("copy -- --mode --help", "copy --mode --help"),
      ("--config=a check", "check --config=a"), ("dead drop -1", "dead drop -1"),
    ])
  func finds(line: String, command: String) throws { #expect(try Self.read(line) == command) }

  @Test("a program that works without a command takes its options before a command and after it")
  func root() throws {
    #expect(try Self.read("--config a", root: "serves") == " --config=a")
    #expect(try Self.read("check --config a", root: "serves") == "check --config=a")
    #expect(try Self.read("--config a dead list --json", root: "serves") == "dead list --config=a --json")
  }

  @Test(
    "help and version end the reading",
    arguments: [
      "--help", "-h", "--version", "version", "help", "help check", "help dead", "check --help x", "dead -h",
      "dead drop --help", "__complete d",
    ])
  func help(line: String) throws { #expect(try Self.read(line) == nil) }

  @Test(
    "a fault says what is meant, or where it is explained",
    arguments: [
      ("chekc", "there is no command `chekc`; did you mean `tool check`? (`tool help` lists them)"),
      ("dead lst", "there is no command `dead lst`; did you mean `tool dead list`? (`tool help` lists them)"),
      ("help nothing", "there is no command `nothing` (`tool help` lists them)"),
      ("dead list --jso", "`dead list` has no option `--jso`; did you mean `--json`? (see `tool dead list --help`)"),
      ("check --mode a", "`check` has no option `--mode`; other commands have it (see `tool check --help`)"),
      ("check --config a", "`check` has no option `--config` (see `tool check --help`)"),
      ("--jsom", "there is no option `--jsom` (see `tool --help`)"),
      ("-x check", "`-x` is not understood (see `tool --help`)"),
      ("dead drop", "`dead drop` needs ID; usage: tool dead drop ID [MORE...]"),
      ("copy a b c", "`c` belongs to no option of `copy`; usage: tool copy [OPTIONS] FROM [TO]"),
      ("dead list x", "`x` belongs to no option of `dead list`; as in: tool dead list"), ("", ""), ("dead", ""),
      ("dead list --json=1", "`--json` takes no value (see `tool dead list --help`)"),
    ])
  func faults(line: String, message: String) {
    #expect(throws: Failure.usage(message)) { try Self.read(line) }
  }

  @Test("a command's help has all that it takes; its details are there only")
  func text() {
    let program = Self.program(root: "serves")
    let help = program.help(of: program.commands[2])
    #expect(help.hasPrefix("one\n\nusage: tool dead drop ID [MORE...]\n\nMore of it.\n\n  -h, --help"))
    #expect(help.hasSuffix("The options of `tool --help` are options of it, too."))
    #expect(Self.program(root: nil).help(of: program.commands[1]).hasSuffix("\n\nexample: tool dead list"))
  }
}
