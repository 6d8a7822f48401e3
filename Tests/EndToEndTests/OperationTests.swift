import Foundation
import Glibc
import PrismProtocol
import Testing

@Suite struct OperationTests {
  private static let shop = "url: URL\nmonitorList: [{type: order}]\n"

  private func findings(_ harness: Harness) async throws -> (exitCode: Int32, byCheck: [String: String]) {
    let ran = try await harness.prismctl("doctor", "--json", "--config", harness.config)
    let document = try JSONValue(parsing: Array(ran.output.utf8))
    let found = (document["findings"]?.array ?? []).map {
      ($0["check"]?.string ?? "", $0["result"]?.string ?? "")
    }
    return (ran.exitCode, Dictionary(found) { first, _ in first })
  }

  @Test("doctor finds nothing where all works; where nothing does it says what, and needs no daemon for it")
  func doctor() async throws {
    try await withHarness(namespaces: ["shop": Self.shop]) { harness in
      let down = try await findings(harness)
      #expect(down.exitCode == 1)
      for check in ["daemon", "ingest socket", "control socket", "url shop"] {
        #expect(down.byCheck[check] == "fault", "\(check): \(down.byCheck)")
      }
      chmod(harness.folder, 0o711)  // else others couldn't get at the socket, and doctor would say so
      #expect(down.byCheck["database"] == "skipped" && down.byCheck["configuration"] == "ok")
      try await harness.startCollector()
      try await harness.startDaemon()
      let up = try await findings(harness)
      #expect(up.byCheck.values.allSatisfy { $0 != "fault" && $0 != "skipped" }, "\(up.byCheck)")
      #expect(up.exitCode == 0 && up.byCheck["database"] == "ok" && up.byCheck["url shop"] == "ok")
      try harness.write("url: https://no-such-host.invalid\nmonitorList: [{type: order}]\n", namespace: "shop")
      _ = try await harness.prismctl("reload")
      let text = try await harness.prismctl("doctor", "--config", harness.config)
      #expect(text.exitCode == 1)
      #expect(text.output.contains("url shop: https://no-such-host.invalid"), "\(text.output)")
      #expect(text.lines.allSatisfy { $0.count <= 80 })
    }
  }

  @Test("a url that was changed to an unrelated web server is a fault, though packets went through before")
  func otherServer() async throws {
    try await withHarness(namespaces: ["shop": Self.shop]) { harness in
      try await harness.startCollector()
      try await harness.startDaemon()
      let sent = try await harness.prismctl(
        "send", "--namespace", "shop", "--type", "order", "--meta", #"{"n":1}"#, "--report-id", "o-1")
      #expect(sent.exitCode == 0, "\(sent.error)")
      #expect(try await harness.prismctl("flush", "--wait").exitCode == 0)
      let log = "\(harness.folder)/web.log"
      let web = try Child("python3", ["-u", "-m", "http.server", "0", "--bind", "127.0.0.1"], log: log)
      func port() -> Substring? {
        let text = (try? String(contentsOfFile: log, encoding: .utf8)) ?? ""
        return text.firstMatch(of: /port (\d+)/)?.1
      }
      try await waitUntil("the web server listens") { port() != nil }
      try harness.write("url: http://127.0.0.1:\(port()!)\nmonitorList: [{type: order}]\n", namespace: "shop")
      #expect(try await harness.prismctl("reload").exitCode == 0)
      let doctor = try await harness.prismctl("doctor", "--config", harness.config)
      #expect(doctor.exitCode == 1 && doctor.output.contains("but no"), "\(doctor.output)")
      try await web.end(SIGTERM)
    }
  }

  @Test("the failure of a unit is a crash of that unit, and not of prismctl, which sends it")
  func unitFailure() async throws {
    try await withHarness(namespaces: ["prism": "url: URL\nmonitorList: [{type: appCrash}]\n"]) { harness in
      try await harness.startCollector()
      try await harness.startDaemon()
      let environment = [
        "PRISM_INGEST": harness.ingest, "PATH": "\(Programs.folder):/usr/bin:/bin",
        "MONITOR_SERVICE_RESULT": "exit-code",
        "MONITOR_EXIT_CODE": "exited", "MONITOR_EXIT_STATUS": "3", "MONITOR_INVOCATION_ID": "i",
      ]
      let ran = try await Programs.run("scripts/prism-report", ["shop.service"], environment: environment)
      #expect(ran.exitCode == 0, "\(ran.error)")
      try await harness.waitUntilSent(["prism"])
      let found = try await harness.query("SELECT meta ->> 'APP_NAME', meta ->> 'unit', meta ->> 'reason' FROM report")
      #expect(found == [["shop.service", "shop.service", "exit code 3"]])
    }
  }

  @Test(
    "of a unit that wrote too much the newest lines are kept, and without the daemon they wait in the crash spool",
    arguments: [true, false])
  func unitFailureWithMuch(isUp: Bool) async throws {
    let namespace = "url: URL\nmonitorList: [{type: appCrash, isUploadPayload: true}]\n"
    try await withHarness(namespaces: ["prism": namespace], extra: "crashSpool: {folder: spool}") { harness in
      let (spool, programs) = ("\(harness.folder)/spool", "\(harness.folder)/programs")
      for folder in [spool, programs] { mkdir(folder, 0o700) }
      chmod(spool, 0o3733)
      let writes = "#!/bin/sh\nfor i in $(seq 200); do printf '%06000d %s\\n' 0 $i; done\n"
      try writes.write(toFile: "\(programs)/journalctl", atomically: false, encoding: .utf8)
      chmod("\(programs)/journalctl", 0o755)
      try await harness.startCollector()
      if isUp { try await harness.startDaemon() }
      let environment = [
        "PRISM_INGEST": harness.ingest, "PATH": "\(programs):\(Programs.folder):/usr/bin:/bin",
        "MONITOR_SERVICE_RESULT": "signal", "PRISM_CRASH_SPOOL": spool,
      ]
      let ran = try await Programs.run("scripts/prism-report", ["shop.service"], environment: environment)
      #expect(ran.exitCode == 0, "\(ran.error)")
      func left() throws -> [String] { try FileManager.default.contentsOfDirectory(atPath: spool).sorted() }
      #expect(try left().compactMap { $0.split(separator: ".").last } == (isUp ? [] : ["json", "payload"]))
      if !isUp { try await harness.startDaemon() }
      try await waitUntil("the spool is taken") { try left().isEmpty }
      try await harness.waitUntilSent(["prism"])
      let meta = "SELECT meta ->> 'APP_NAME' FROM report WHERE kind = 'meta'"
      #expect(try await harness.query(meta) == [["shop.service"]])
      let payload = "SELECT length(payload), hex(substr(payload, -4)) FROM report WHERE kind = 'payload'"
      #expect(try await harness.query(payload) == [["524288", "3230300A"]])
    }
  }

  @Test("tail shows each report that is stored or refused, as it comes")
  func tail() async throws {
    try await withHarness(namespaces: ["shop": Self.shop]) { harness in
      try await harness.startDaemon()
      let log = "\(harness.folder)/tail.log"
      let tail = try Child(Programs.prismctl, ["--control", harness.control, "tail", "--json"], log: log)
      func lines() -> [JSONValue] {
        let text = (try? String(contentsOfFile: log, encoding: .utf8)) ?? ""
        // The last one may be half.
        return text.split(separator: "\n").compactMap { try? JSONValue(parsing: Array($0.utf8)) }
      }
      try await waitUntil("tail follows") { lines().contains { $0["following"]?.bool == true } }
      for (type, code) in [("order", Int32(0)), ("nonsense", 1)] {
        let sent = try await harness.prismctl(
          "send", "--namespace", "shop", "--meta", #"{"secret":"s3cr3t"}"#, "--report-id", "o-1", "--type", type)
        #expect(sent.exitCode == code, "\(sent.error)")
      }
      try await waitUntil("both are shown") { lines().count == 3 }
      let reports = lines().dropFirst().compactMap { $0["report"] }
      #expect(reports.map { $0["outcome"]?.string } == ["stored", "refused"])
      #expect(reports.map { $0["code"]?.string } == [nil, "unknown_type"])
      #expect(reports.map { $0["type"]?.string } == ["order", "nonsense"] && reports[0]["reportId"]?.string == "o-1")
      #expect(try !String(contentsOfFile: log, encoding: .utf8).contains("s3cr3t"))
      try await tail.end(SIGTERM)
    }
  }

  @Test("top prints a frame where it is asked to, and says what else there is where it can't be live")
  func top() async throws {
    try await withHarness(namespaces: ["shop": Self.shop]) { harness in
      try await harness.startDaemon()
      let frame = try await harness.prismctl("top", "--once")
      #expect(frame.exitCode == 0 && frame.lines.contains { $0.hasPrefix("shop ") }, "\(frame.output)")
      #expect(frame.lines.allSatisfy { $0.count <= 80 && !$0.contains("\u{1B}") })
      let live = try await harness.prismctl("top")
      #expect(live.exitCode == 64 && live.error.contains("top --once"))
    }
  }

  @Test("top on a terminal: q and Ctrl-C bring back the screen and the terminal's settings", arguments: ["q", "\u{3}"])
  func terminal(key: String) async throws {
    try await withHarness(namespaces: ["shop": Self.shop]) { harness in
      try await harness.startDaemon()
      let script = """
        import os, pty, sys, time, select, termios
        child, terminal = pty.fork()
        if child == 0: os.execv(sys.argv[1], sys.argv[1:])
        seen, sent = b"", False
        while True:
          if select.select([terminal], [], [], 30)[0]:
            try: part = os.read(terminal, 65536)
            except OSError: break
            if not part: break
            seen += part
          if b"shop" in seen and not sent:
            os.write(terminal, \(key == "q" ? "b'q'" : "b'\\x03'")); sent = True
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        print(code, b"\\x1b[?1049h" in seen, seen.rstrip().endswith(b"\\x1b[?1049l"))
        """
      let ran = try await Programs.run(
        "python3", ["-c", script, Programs.prismctl, "--control", harness.control, "top"])
      #expect(ran.output == "0 True True\n", "\(ran.output) \(ran.error)")
    }
  }

  @Test("metrics are served where metrics.listen says so, from the reload on that says it")
  func metrics() async throws {
    try await withHarness(namespaces: ["shop": Self.shop]) { harness in
      try await harness.startDaemon()
      let daemonFile = try String(contentsOfFile: harness.config, encoding: .utf8)
      let port = try Harness.freePort()
      try (daemonFile + "metrics: {listen: \(port)}\n").write(
        toFile: harness.config, atomically: true, encoding: .utf8)
      #expect(try await harness.prismctl("reload").exitCode == 0)
      let page = try await Programs.run("curl", ["-sS", "http://127.0.0.1:\(port)/metrics"])
      #expect(page.output.contains("prism_configuration_generation 2"), "\(page.error)")
      #expect(try await Programs.run("curl", ["-sS", "http://127.0.0.1:\(port)/readyz"]).output == "ready\n")
    }
  }
}
