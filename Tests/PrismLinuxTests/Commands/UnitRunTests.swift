import Foundation
import Glibc
import PrismBase
import PrismTestSupport
import Testing

@testable import PrismLinux

/// The daemon's half of `run`, and the script that `prism-run.socket` starts, with a service manager of the test's own.
@Suite("Units that a server asks for") struct UnitRunTests {
  private static let script = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent().appending(path: "scripts/prism-run").path

  private let folder = TemporaryFolder()

  /// `systemctl` that notes its words and tells a unit's end, and `journalctl` that has its output.
  init() throws {
    try tool(
      "systemctl",
      """
      echo "$*" >>\(folder("asked"))
      case "$*" in
      *ActiveState*) echo inactive ;;
      *Result*) cat \(folder("result")) ;;
      *ExecMainStatus*) cat \(folder("exit")) ;;
      *InvocationID*) cat \(folder("invocation")) ;;
      esac
      """)
    try tool("journalctl", "case \"$*\" in *INVOCATION_ID=0a1b*) cat \(folder("output")) ;; esac")
    for (name, text) in [("result", "success"), ("exit", "0"), ("invocation", "0a1b"), ("output", "line 1\nline 2\n")] {
      try folder.write(text, to: name)
    }
  }

  private func tool(_ name: String, _ body: String) throws {
    try folder.write("#!/bin/sh\n\(body)\n", to: name)
    chmod(folder(name), 0o755)
  }

  private var asked: [Substring] {
    (try? String(contentsOfFile: folder("asked"), encoding: .utf8))?.split(separator: "\n") ?? []
  }

  /// Runs the script behind a socket, as systemd does for `Accept=yes`.
  private func run(_ name: String) throws -> UnitRun.Ran {
    let listener = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    let path = folder("run.sock")
    unlink(path)
    let address = try #require(UnixAddress(path: path))
    #expect(address.withPointer { bind(listener, $0, $1) } == 0 && listen(listener, 1) == 0)
    let environment = ["PATH": "\(folder.path):/usr/bin:/bin", "RUNTIME_DIRECTORY": folder.path]
    Thread.detachNewThread {
      let connection = accept(listener, nil, nil)
      _ = try? StartedProgram(Self.script, [], environment: environment, .init(input: connection, output: connection))
      close(connection)
      close(listener)
    }
    return try UnitRun.run(name, socket: path, seconds: 60)
  }

  @Test("the unit of the name is started, and its result and output come back") func success() throws {
    #expect(try run("restart-till") == .init(result: "success", exit: 0, output: Array("line 1\nline 2\n".utf8)))
    #expect(asked.contains("start --quiet -- prism-command@restart-till.service"))
    #expect(asked.allSatisfy { $0.hasSuffix(" -- prism-command@restart-till.service") })
  }

  @Test("a failure has systemd's word, the exit code and the last 8 KiB of output") func failure() throws {
    try folder.write("exit-code", to: "result")
    try folder.write("3", to: "exit")
    let text = (0..<3000).map { "line \($0)\n" }.joined()
    try folder.write(text, to: "output")
    let ran = try run("x")
    #expect(ran.result == "exit-code" && ran.exit == 3)
    #expect(ran.output == Array(text.utf8.suffix(8192)))
  }

  @Test(
    "a name that is not one starts nothing",
    arguments: [
      "", "../x", "a b", "a;b", "-x", "_x", "a@b", String(repeating: "x", count: 65),
    ])
  func names(name: String) throws {
    #expect(throws: UnitRun.Fault.self) { try run(name) }
    #expect(asked.isEmpty)
  }

  @Test("a unit that can't be started, and a socket that is not there, are faults") func faults() throws {
    try folder.write("", to: "invocation")
    #expect(
      throws: UnitRun.Fault(
        message: "prism-command@x.service can't be started; systemctl status prism-command@x.service says more")
    ) { try run("x") }
    let missing = folder("none.sock")
    #expect(
      throws: UnitRun.Fault(
        message: "\(missing): No such file or directory; is prism-run.socket enabled? (docs/records.md)")
    ) { try UnitRun.run("x", socket: missing, seconds: 1) }
  }
}
