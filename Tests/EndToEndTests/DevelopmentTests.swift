import Foundation
import Glibc
import PrismTestSupport
import Testing

/// `prismd --dev`: a daemon and a collector in one folder, as a developer has them in a terminal.
@Suite("prismd --dev") struct DevelopmentTests {
  private let scratch = TemporaryFolder()
  private var folder: String { scratch("dev") }
  private var log: String { scratch("log") }
  /// Where prismctl looks for the folder: a test has its own, so that it finds no other's daemon.
  private var environment: [String: String] { ["XDG_RUNTIME_DIR": scratch.path] }

  private func start() async throws -> Child {
    try? FileManager.default.removeItem(atPath: log)  // the first start has none
    let child = try Child(Programs.prismd, ["--dev", folder], environment: environment, log: log)
    let (folder, log) = (folder, log)
    try await waitUntil("the daemon says what to do") {
      guard child.isRunning else { throw Failed("it ended: \(child.lastWords)") }
      return try String(contentsOfFile: log, encoding: .utf8).contains("run in \(folder); Ctrl-C ends both")
    }
    return child
  }

  private func prismctl(_ words: String...) async throws -> Ran {
    try await Programs.run(Programs.prismctl, words, environment: environment)
  }

  private func report(_ id: String) async throws {
    let sent = try await prismctl("send", "--type", "net", "--meta", #"{"ms":12}"#, "--report-id", id)
    #expect(sent.exitCode == 0 && sent.lines == [id], "\(sent.error)")
    let flushed = try await prismctl("flush", "--wait", "--timeout", patience.secondsText)
    #expect(flushed.exitCode == 0, "\(flushed.error)")
  }

  /// The ids of all reports that the collector has, in its order.
  private func arrived() async throws -> [String] {
    let words = ["-s", "--fail", "--unix-socket", "\(folder)/collector/reader.sock", "http://prism/reports"]
    let answer = try await Programs.run("curl", words)
    return answer.output.matches(of: /"reportId":"([^"]+)"/).map { String($0.1) }
  }

  /// The page's address, as the start says it.
  private func page() throws -> String? {
    try String(contentsOfFile: log, encoding: .utf8).firstMatch(of: /page: +(http:.*)/).map { String($0.1) }
  }

  /// Processes whose command line names the folder.
  private func processes() throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: "/proc").filter { Int32($0) != nil }.filter { process in
      let line = FileManager.default.contents(atPath: "/proc/\(process)/cmdline") ?? Data()
      return String(decoding: line, as: UTF8.self).contains(folder)
    }
  }

  @Test("without the daemon's file, and without a daemon, the programs say how to try prism")
  func nothingThere() async throws {
    let start = try await Programs.run(Programs.prismd, ["--config", scratch("missing.yaml")])
    #expect(start.exitCode == 78 && start.error.contains("run prismd --dev"), "\(start.error)")
    let asked = try await prismctl("--control", scratch("no.sock"), "status")
    #expect(asked.exitCode == 69 && asked.error.contains("try prism with `prismd --dev`"), "\(asked.error)")
  }

  @Test("a report arrives, prismctl needs no variables, Ctrl-C ends both programs, and a second start goes on")
  func twoStarts() async throws {
    let first = try await start()
    try await report("of-the-first")
    #expect(try await arrived() == ["of-the-first"])
    let address = try #require(try page())
    let served = try await Programs.run("curl", ["-s", "--fail", address])
    #expect(served.output.contains("<title>"), "\(address): \(served.error)")
    let doctor = try await prismctl("doctor")
    #expect(doctor.exitCode == 0, "\(doctor.output)")
    let checked = try await prismctl("config", "check")
    #expect(checked.exitCode == 0, "\(checked.output)")
    let names = checked.error.contains("\(folder)/prismd.yaml is checked")
    #expect(names || FileManager.default.isReadableFile(atPath: "/etc/prism/prismd.yaml"), "\(checked.error)")
    #expect(try await first.end(SIGINT) == 0)
    try await waitUntil("the collector ends too") { try processes().isEmpty }
    #expect(try FileManager.default.contentsOfDirectory(atPath: scratch.path).contains("prism-dev") == false)
    #expect(try await prismctl("--control", "\(folder)/control.sock", "status").exitCode == 69)

    let second = try await start()
    try await report("of-the-second")
    #expect(try await arrived() == ["of-the-first", "of-the-second"])
    #expect(try page() == address, "a bookmark stays true")
    #expect(try await second.end(SIGTERM) == 0)
  }

  @Test("a file in the folder for crashes is taken, and arrives")
  func crashFiles() async throws {
    let child = try await start()
    #expect(try String(contentsOfFile: log, encoding: .utf8).contains("PRISM_CRASH_SPOOL=\(folder)/crashes\n"))
    let file = "\(folder)/crashes/prism.appCrash.7f3a-1"
    try #"{"reason":"SIGSEGV"}"#.write(toFile: file + ".tmp", atomically: false, encoding: .utf8)
    try FileManager.default.moveItem(atPath: file + ".tmp", toPath: file + ".json")
    try await waitUntil("it arrives") { try await arrived() == ["7f3a-1"] }
    #expect(try await child.end(SIGTERM) == 0)
  }

  @Test("a report of any namespace and type is taken, and arrives; prismctl finds the first of two daemons")
  func anyNamespace() async throws {
    let first = try await start()
    let words = ["send", "--namespace", "shop", "--meta", #"{"total":42}"#]
    for type in ["orderPlaced", "anything.else"] {
      let sent = try await Programs.run(
        Programs.prismctl, words + ["--report-id", type.replacing(".", with: "-"), "--type", type],
        environment: environment)
      #expect(sent.exitCode == 0, "\(sent.error)")
    }
    #expect(try await prismctl("send", "--type", "of.prism", "--meta", "{\"n\":1}").exitCode == 0)
    try await waitUntil("all arrive") { try await arrived().count == 3 }
    #expect(FileManager.default.fileExists(atPath: "\(folder)/namespaces.d/shop.yaml"))
    let wrong = try await prismctl("send", "--namespace", "no/name", "--type", "a", "--meta", "{\"n\":1}")
    #expect(wrong.exitCode == 64, "\(wrong.error)")
    let second = try Child(
      Programs.prismd, ["--dev", scratch("second")], environment: environment, log: scratch("second.log"))
    try await waitUntil("the second daemon says how it is asked") {
      try String(contentsOfFile: scratch("second.log"), encoding: .utf8)
        .contains("prismctl --control \(scratch("second"))/control.sock status")
    }
    #expect(try await prismctl("config", "show").output.contains(folder))
    #expect(try await second.end(SIGINT) == 0)
    #expect(try await first.end(SIGINT) == 0)
  }

  @Test("both end when the terminal is closed") func terminal() async throws {
    let child = try await start()
    #expect(try await child.end(SIGHUP) == 0)
    try await waitUntil("the collector ends too") { try processes().isEmpty }
  }

  @Test("the daemon says that its collector has ended, flush and doctor name the cause, and the reports wait")
  func withoutCollector() async throws {
    let daemon = try await start()
    for process in try processes() where kill(Int32(process)!, 0) == 0 {
      let name = FileManager.default.contents(atPath: "/proc/\(process)/comm") ?? Data()
      if String(decoding: name, as: UTF8.self).hasPrefix("prism-collector") { kill(Int32(process)!, SIGKILL) }
    }
    try await waitUntil("the daemon says so") {
      try String(contentsOfFile: log, encoding: .utf8).contains("the collector has ended; see \(folder)/collector.log")
    }
    let sent = try await prismctl("send", "--type", "net", "--meta", #"{"ms":12}"#)
    #expect(sent.exitCode == 0, "\(sent.error)")
    let flushed = try await prismctl("flush", "--wait", "--timeout", "3")
    #expect(flushed.exitCode == 1 && flushed.error.contains("prism is tried again: connect: "), "\(flushed.error)")
    #expect(flushed.error.contains("1 row not sent yet; the time is up; prism is tried again"), "\(flushed.error)")
    #expect(try await prismctl("doctor").exitCode == 1)
    #expect(try await daemon.end(SIGINT) == 0)
  }

  @Test("another user's doctor says that it may not ask, and finds no false faults", .enabled(if: getuid() == 0))
  func stranger() async throws {
    let daemon = try await start()
    // A copy, because a checkout may be its owner's only.
    try FileManager.default.copyItem(atPath: Programs.prismctl, toPath: scratch("prismctl"))
    for path in [scratch.path, scratch("prismctl")] { #expect(chmod(path, 0o755) == 0) }
    let words = [scratch("prismctl"), "--control", "\(folder)/control.sock", "doctor"]
    let ran = try await Programs.run("setpriv", ["--reuid", "65534", "--clear-groups"] + words)
    #expect(ran.exitCode == 0 && ran.output.contains("this user may not ask it"), "\(ran.output)")
    #expect(!ran.output.contains("fault ") && !ran.output.contains("start it"), "\(ran.output)")
    #expect(try await daemon.end(SIGINT) == 0)
  }

  @Test("the collector ends with a daemon that is killed, and the folder can be used again")
  func killed() async throws {
    let first = try await start()
    try await report("before-the-kill")
    try await first.end(SIGKILL)
    try await waitUntil("the collector ends too") { try processes().isEmpty }
    let second = try await start()
    #expect(try await arrived() == ["before-the-kill"])
    #expect(try await second.end(SIGINT) == 0)
  }

  @Test("a shell that completes a name asks the daemon of the folder")
  func suggestions() async throws {
    let daemon = try await start()
    try "url: http://127.0.0.1:9\nmonitorList: [{type: order}]\n"
      .write(toFile: "\(folder)/namespaces.d/shop.yaml", atomically: true, encoding: .utf8)
    #expect(try await prismctl("reload").exitCode == 0)
    let words = ["send", "--namespace", "shop", "--type", "order", "--meta", #"{"n":1}"#, "--report-id", "that-waits"]
    #expect(try await Programs.run(Programs.prismctl, words, environment: environment).exitCode == 0)
    for (line, names) in [
      (["explain", ""], ["prism", "shop"]), (["trace", ""], ["that-waits"]), (["dead", "show", ""], []),
    ] {
      let ran = try await Programs.run(Programs.prismctl, ["__complete"] + line, environment: environment)
      #expect(ran.lines.sorted() == names, "\(line)")
    }
    #expect(try await prismctl("__complete", "send", "--type", "").lines.contains("order"))
    let elsewhere = try await prismctl("__complete", "--control", scratch("none.sock"), "explain", "")
    #expect(elsewhere.exitCode == 0 && elsewhere.output.isEmpty && elsewhere.error.isEmpty)
    #expect(try await daemon.end(SIGINT) == 0)
  }

  @Test("a folder that others can read is refused with what to do", arguments: [0o755, 0o770])
  func openFolder(mode: Int) async throws {
    try FileManager.default.createDirectory(
      atPath: folder, withIntermediateDirectories: false, attributes: [.posixPermissions: mode])
    let ran = try await Programs.run(Programs.prismd, ["--dev", folder], environment: environment)
    #expect(ran.exitCode == 78 && ran.error.contains("chmod -R go= \(folder)"), "\(ran.error)")
  }

  @Test("a folder of another user is refused, and nothing is written to it", .enabled(if: getuid() == 0))
  func foreignFolder() async throws {
    try FileManager.default.createDirectory(
      atPath: folder, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
    try #require(chown(folder, 12_345, 12_345) == 0)
    let ran = try await Programs.run(Programs.prismd, ["--dev", folder], environment: environment)
    #expect(ran.exitCode == 78 && ran.error.contains("belongs to"), "\(ran.exitCode) \(ran.error)")
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder) == [])
  }
}
