import Foundation
import PrismBase
import PrismTestSupport
import Testing

@testable import prismctl

/// The program as people type at it.
@Suite("Habits of the command line")
struct InvocationTests {
  private static func ran(_ words: [String]) throws -> Tool { try Tool(Tool.built("prismctl"), words) }

  @Test(
    "help is where it is looked for",
    arguments: [
      (["-h"], 0, "prismctl COMMAND"), (["help"], 0, "dead requeue"), (["help", "send"], 0, "usage: prismctl send"),
      (["send", "-h"], 0, "--payload FILE"), (["version"], 0, "prismctl 0."), (["--version"], 0, "prismctl 0."),
      (["dead"], 64, "dead requeue"), (["dead", "--help"], 0, "dead requeue"), (["help", "dead"], 0, "dead drop"),
      (["help", "dead", "list"], 0, "--namespace N"), ([], 64, "prismctl COMMAND"),
    ] as [([String], Int32, String)])
  func help(words: [String], exitCode: Int32, text: String) throws {
    let tool = try Self.ran(words)
    #expect(tool.exitCode == exitCode && tool.output.contains(text), "\(tool.output)")
  }

  @Test(
    "a typing error is answered with what was meant",
    arguments: [
      (["staus"], "did you mean `prismctl status`?"), (["dead", "lst"], "did you mean `prismctl dead list`?"),
      (["status", "--jsn"], "did you mean `--json`?"), (["help", "expalin"], "did you mean `prismctl explain`?"),
      (["keys", "new", "--control", "/x", "f"], "`keys new` has no option `--control`; other commands have it"),
      (["status", "--output", "yaml"], "must be text or json"), (["status", "--watch=0"], "must be 1 to 3600"),
      (["dead", "list", "--since", "yesterday"], "--since: is `yesterday`"),
      (["status", "--json=1"], "takes no value"),
      (["send", "net", #"{"ms":12}"#], "`net` belongs to no option of `send`; as in: prismctl send --type net --meta"),
      (["-x", "status"], "`-x` is not understood (see `prismctl --help`)"),
      (["completion", "csh"], "only for bash, zsh"),
    ])
  func errors(words: [String], text: String) throws {
    let tool = try Self.ran(words)
    #expect(tool.exitCode == 64 && tool.output.contains(text), "\(tool.output)")
  }

  @Test("an option is there where it matters: a socket for those that open it, --watch where it shows a state")
  func options() {
    for command in commands {
      let names = command.allOptions.map(\.name)
      #expect(names.contains("--output") == names.contains("--json"), "\(command.name)")
      #expect(Set(names).count == names.count, "\(command.name)")
    }
    let files = ["config check", "keys new", "enroll", "decode", "unseal", "completion"]
    #expect(commands.filter { $0.shared.allSatisfy { !$0.help.contains("socket") } }.map(\.name) == files)
    let watched = commands.filter { $0.shared.contains(Command.watch) }.map(\.name)
    #expect(watched == ["status", "doctor", "network", "explain", "trace", "dead list"])
  }

  @Test("config check without a path prefers the installed file, and says which one it reads")
  func checkedFile() throws {
    let folder = TemporaryFolder()
    try folder.write("", to: "prismd.yaml")
    let (there, missing, trial) = (folder("prismd.yaml"), folder("none.yaml"), "/run/trial/prismd.yaml")
    let given: [(String, String?, String, String)] = [
      (there, nil, there, "\(there) is checked"), (missing, nil, missing, "\(missing) is checked"),
      (missing, trial, trial, "\(trial) is checked"),
      (there, trial, there, "\(there) is checked; for the prismd --dev that runs: prismctl config check \(trial)"),
    ]
    for (installed, trial, path, note) in given {
      let file = CheckedFile(installed: installed, trial: trial)
      #expect(file.path == path && file.note == note)
    }
  }

  @Test("a folder in which nothing was carried has nothing to settle, and receipts that are missing are a fault")
  @MainActor func settled() throws {
    let folder = TemporaryFolder()
    let empty = try Self.ran(["carry", "--settle", folder.path])
    #expect(empty.exitCode == 0 && empty.output.contains("nothing to settle"), "\(empty.output)")
    try folder.write("", to: "shop-meta-1.packet")
    for path in [folder.path, folder("none")] {
      let ran = try Self.ran(["carry", "--settle", path])
      #expect(ran.exitCode == 66 && ran.output.contains("prism-collector import"), "\(ran.output)")
    }
  }

  @Test("the manual has every exit code of the overview, and each is one that a command gives")
  @MainActor func exitCodes() throws {
    let page = try HeldFile.text("docs/man/prismctl.1")
    for (code, _) in program.exitCodes { #expect(page.contains("\n.It \(code)\n"), "\(code)") }
    let folder = TemporaryFolder()
    try folder.write("nonsense: 1\n", to: "prismd.yaml")
    let file = folder("prismd.yaml")
    let given: [(Int32, [String])] = [
      (0, ["version"]), (64, ["nosuch"]), (66, ["decode", "--key", "/none", "--headers", "/none", "/none"]),
      (69, ["--control", folder("none"), "status"]), (73, ["keys", "new", file]), (78, ["config", "check", file]),
    ]
    for (code, words) in given { #expect(try Self.ran(words).exitCode == code, "\(words)") }
  }
}

@Suite("prismctl top: keys")
struct TopViewTests {
  private func view(_ keys: String, _ start: TopView = TopView()) -> TopView {
    var view = start
    view.take(Array(keys.utf8), page: 10)
    return view
  }

  @Test(
    "arrows, pages and their letters scroll, never above the first",
    arguments: [
      ("\u{1B}[B\u{1B}[B", 2), ("jj k", 11), ("\u{1B}[6~", 10), ("\u{1B}[6~\u{1B}[5~\u{1B}[5~", 0), ("k", 0),
      ("jjg", 0), ("\u{1B}OBb", 0),
    ])
  func scroll(keys: String, offset: Int) { #expect(view(keys).offset == offset) }

  @Test("letters after / are the filter, q among them; Enter keeps it and Esc clears it")
  func filter() {
    let typed = view("/Qu\u{7F}x")
    #expect(typed.filter == "qx" && typed.isTyping && !typed.isOver)
    #expect(typed.shows("aQXb") && !typed.shows("shop"))
    let kept = view("\r", typed)
    #expect(kept.filter == "qx" && !kept.isTyping && kept.footer.contains("`qx`"))
    #expect(view("\u{1B}", kept).filter.isEmpty)
    #expect(view("q", kept).isOver && view("\u{3}", typed).isOver && view("", kept).isOver)
  }
}
