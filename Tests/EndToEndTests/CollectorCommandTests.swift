import Foundation
import Glibc
import PrismBase
import PrismHTTP
import PrismPacket
import PrismProtocol
import PrismSQLite
import PrismTestSupport
import Testing

@Suite("prism-collector check, migrate and query") struct CollectorCommandTests {
  private static let key = String(repeating: "5a", count: 32)

  private static func run(_ words: [String], in folder: String) async throws -> Ran {
    try await Programs.run(Programs.collector, words + ["--config", "\(folder)/c.yaml"])
  }

  /// A folder with a key of mode 0600 and a collector's file.
  private static func folder(_ text: String) throws -> String {
    let folder = TemporaryFolder.make()
    try text.replacing("DIR", with: folder).write(toFile: "\(folder)/c.yaml", atomically: true, encoding: .utf8)
    try (key + "\n").write(toFile: "\(folder)/main.key", atomically: true, encoding: .utf8)
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: "\(folder)/main.key")
    return folder
  }

  @Test("a collector that is asked to end as soon as it serves ends, each time") func endsAtOnce() async throws {
    try await withHarness(namespaces: [:]) { harness in
      for _ in 0..<8 {
        try await harness.startCollector()
        try await harness.endCollector(SIGTERM)
      }
    }
  }

  @Test("a collector ends though the other side of an output takes its reports and never answers") func silentOutput()
    async throws
  {
    let silent = try ListeningSocket(address: "127.0.0.1:0")
    defer { close(silent.descriptor) }
    try await withHarness(namespaces: ["shop": "url: URL\nmonitorList: [{type: order}]\n"]) { harness in
      let config = "\(harness.folder)/collector.yaml"
      try "outputs: [{otlp: \"http://127.0.0.1:\(silent.port)\", timeoutSecond: 600}]\n"
        .write(toFile: config, atomically: true, encoding: .utf8)
      try await harness.startCollector(["--config", config])
      try await harness.startDaemon()
      let send = ["send", "--namespace", "shop", "--type", "order", "--meta", #"{"n":1}"#]
      #expect(try await harness.prismctl(send).exitCode == 0)
      try await waitUntil("the output sends") {
        var one = pollfd(fd: silent.descriptor, events: Int16(POLLIN), revents: 0)
        return poll(&one, 1, 0) == 1
      }
      try await harness.endCollector(SIGTERM)
      let log = try String(contentsOfFile: "\(harness.folder)/collector.log", encoding: .utf8)
      #expect(log.contains("the collector ends with work that is not answered"), "\(log.suffix(500))")
    }
  }

  @Test("check prints every fault with its file and line, and starts and makes nothing")
  func check() async throws {
    let folder = try Self.folder("lisn: 1\nretentionDay: 0\nkeys: [{id: main}]\nonLag: drop\n")
    defer { try? FileManager.default.removeItem(atPath: folder) }  // a left folder harms no test
    let ran = try await Self.run(["check"], in: folder)
    #expect(ran.exitCode == 78)
    for (line, key) in [(1, "lisn"), (2, "retentionDay"), (3, "keys[0].file"), (4, "onLag"), (1, "state")] {
      #expect(ran.error.contains("c.yaml:\(line): \(key): "), "\(ran.error)")
    }
    try "state: \(folder)/state\nkeys: [{id: main, file: main.key}]\n"
      .write(toFile: "\(folder)/c.yaml", atomically: true, encoding: .utf8)
    let good = try await Self.run(["check"], in: folder)
    #expect(good.exitCode == 0 && good.output == "the configuration has no fault\n", "\(good.error)")
    #expect(!FileManager.default.fileExists(atPath: "\(folder)/state/collector.db"))
  }

  @Test("check names the folder of an output that is missing, and one that can't be made")
  func outputFolders() async throws {
    let folder = try Self.folder(
      """
      state: DIR/state
      keys: [{id: main, file: main.key}]
      outputs: [{ndjson: DIR/a/b}]
      """)
    defer { try? FileManager.default.removeItem(atPath: folder) }  // a left folder harms no test
    let missing = try await Self.run(["check"], in: folder)
    #expect(missing.exitCode == 0 && missing.error.contains("\(folder)/a/b is missing"), "\(missing.error)")
    try "".write(toFile: "\(folder)/a", atomically: true, encoding: .utf8)
    let blocked = try await Self.run(["check"], in: folder)
    #expect(blocked.exitCode == 78 && blocked.error.contains("Not a directory"), "\(blocked.error)")
  }

  @Test("check finds what the start would find in the folder of remote configuration") func remoteFolder() async throws
  {
    let folder = try Self.folder("state: DIR/state\nkeys: [{id: main, file: main.key}]\nremoteConfig: DIR/remote\n")
    defer { try? FileManager.default.removeItem(atPath: folder) }  // a left folder harms no test
    mkdir("\(folder)/remote", 0o700)
    try "maxItem: 0\n".write(toFile: "\(folder)/remote/shop.yaml", atomically: true, encoding: .utf8)
    let ran = try await Self.run(["check"], in: folder)
    #expect(ran.exitCode == 78 && ran.error.contains("shop.yaml:1: maxItem: is 0"), "\(ran.error)")
  }

  @Test("check reads the properties of an output kafka, and shows no value of them")
  func kafka() async throws {
    let folder = try Self.folder(
      """
      state: DIR/state
      keys: [{id: main, file: main.key}]
      outputs: [{kafka: "k:9092", propertiesFile: kafka.properties}]
      """)
    defer { try? FileManager.default.removeItem(atPath: folder) }  // a left folder harms no test
    let path = "\(folder)/kafka.properties"
    try "sasl.password=hush\nunheard.of=hush\n".write(toFile: path, atomically: true, encoding: .utf8)
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
    let ran = try await Self.run(["check"], in: folder)
    #expect(ran.exitCode == 78 && ran.error.contains("kafka.properties:2: unheard.of is no property"), "\(ran.error)")
    #expect(!ran.error.contains("hush"))
  }

  @Test(
    "a typing error is answered with what was meant and where it is explained, in one line",
    arguments: [
      (["chekc"], "no command `chekc`; did you mean `prism-collector check`?"),
      (["query", "--typ", "a"], "no option `--typ`; did you mean `--type`? (see `prism-collector query --help`)"),
      (["--bogus"], "no option `--bogus` (see `prism-collector --help`)"),
    ])
  func typingError(words: [String], answer: String) async throws {
    let ran = try await Programs.run(Programs.collector, words)
    #expect(ran.exitCode == 64 && ran.error.contains(answer))
    #expect(ran.error.split(separator: "\n").count == 1, "\(ran.error)")
  }

  @Test(
    "what is mistyped or empty is neither made nor taken for something else",
    arguments: [
      (["query"], 66, "there is no such folder"), (["crash", "list"], 66, "there is no such folder"),
      (["device", "revoke", ""], 64, "a word is empty"), (["device", "revoke", "a b"], 64, "is no device's id"),
      (["device", "tag", "", "a=b"], 64, "a word is empty"),
      (
        ["record", "put", "--namespace", "shop", "--table", "t", "--device", "", "x", "{}"], 64,
        "of `--device` is empty"
      ),
      (["query", "--kind", "metas"], 64, "--kind: is `metas`, must be one of meta, payload"),
    ])
  func mistyped(words: [String], exitCode: Int32, answer: String) async throws {
    let folder = try Self.folder("state: DIR/state\nkeys: [{id: main, file: main.key}]\n")
    defer { try? FileManager.default.removeItem(atPath: folder) }  // a left folder harms no test
    let ran = try await Self.run(words, in: folder)
    #expect(ran.exitCode == exitCode && ran.error.contains(answer), "\(ran.exitCode) \(ran.error)")
    #expect(exitCode == 64 || !FileManager.default.fileExists(atPath: "\(folder)/state"))
  }

  @Test("a file's name of others reaches no terminal as it is") func escapes() async throws {
    let folder = try Self.folder("state: DIR/state\nkeys: [{id: main, file: main.key}]\n")
    defer { try? FileManager.default.removeItem(atPath: folder) }  // a left folder harms no test
    mkdir("\(folder)/stick", 0o700)
    try Data("x".utf8).write(to: URL(filePath: "\(folder)/stick/a\u{1B}[31m\n.packet"))
    let ran = try await Self.run(["import", "\(folder)/stick"], in: folder)
    #expect(ran.exitCode == 1 && ran.error.contains("is no packet"), "\(ran.error)")
    #expect(ran.error.unicodeScalars.allSatisfy { $0 == "\n" || $0.value >= 32 })
    #expect(ran.error.split(separator: "\n").count == 1, "\(ran.error)")
  }

  @Test(
    "a command that destroys something begins after a yes: on a terminal it asks, without one it needs --yes",
    arguments: [
      (["erase", "--device", "d"], "erase all reports with device d for good?", "nothing was erased"),
      (["output", "drop", "otlp"], "delete all dead letters of otlp for good?", "nothing was deleted"),
      (["output", "drop", "otlp", "1", "9"], "delete dead letters from 1 to 9 of otlp", "nothing was deleted"),
      (["notice", "drop", "0123456789abcdef"], "give up notice 0123456789abcdef for good?", "nothing was given up"),
      (["restore", "/nowhere"], "by the copy in /nowhere?", "nothing was restored"),
    ])
  func asks(words: [String], question: String, refusal: String) async throws {
    let folder = try Self.folder("state: DIR/state\nkeys: [{id: main, file: main.key}]\n")
    defer { try? FileManager.default.removeItem(atPath: folder) }  // a left folder harms no test
    let unasked = try await Self.run(words, in: folder)
    #expect(unasked.exitCode == 64 && unasked.error.contains("without a terminal, --yes is required"))
    // `script` makes a terminal.
    let line = ([Programs.collector] + words + ["--config", "\(folder)/c.yaml"]).joined(separator: " ")
    let asked = try await Programs.run("script", ["-qec", line, "/dev/null"], input: "n\n")
    #expect(asked.exitCode == 1 && asked.output.contains(question), "\(asked.output)")
    #expect(asked.output.contains(refusal), "\(asked.output)")
    #expect(!FileManager.default.fileExists(atPath: "\(folder)/state/collector.db"))
  }

  @Test("erase with --yes does not ask")
  func erase() async throws {
    let folder = try Self.folder("state: DIR/state\nkeys: [{id: main, file: main.key}]\n")
    defer { try? FileManager.default.removeItem(atPath: folder) }  // a left folder harms no test
    let done = try await Self.run(["erase", "--device", "d", "--yes"], in: folder)
    #expect(done.exitCode == 0 && done.output.contains("\"state\":\"done\""), "\(done.error)\(done.output)")
  }

  @Test("a backup over one that is there, and one into no folder, end with the code of what can't be made")
  func backupTargets() async throws {
    let folder = try Self.folder("state: DIR/state\nkeys: [{id: main, file: main.key}]\n")
    defer { try? FileManager.default.removeItem(atPath: folder) }  // a left folder harms no test
    #expect(try await Self.run(["backup", "\(folder)/copy"], in: folder).exitCode == 69, "there is no store yet")
    _ = try await Self.run(["erase", "--device", "d", "--yes"], in: folder)
    for (target, code) in [("copy", 0), ("copy", 73), ("main.key", 73)] as [(String, Int32)] {
      let ran = try await Self.run(["backup", "\(folder)/\(target)"], in: folder)
      #expect(ran.exitCode == code, "\(target): \(ran.error)")
    }
  }

  @Test("a list has its columns below their titles, also behind a long sentence, and no sketch of a device's answer")
  func columns() async throws {
    let folder = try Self.folder("state: DIR/state\nkeys: [{id: main, file: main.key}]\n")
    defer { try? FileManager.default.removeItem(atPath: folder) }  // a left folder harms no test
    _ = try await Self.run(["erase", "--device", "d", "--yes"], in: folder)
    var answer = QuestionAnswer()
    (answer.rows, answer.looked) = (12, 40)
    for value in 1...20 { answer.add(Double(value), to: "") }
    let (asked, long) = (answer.json.text, String(repeating: "a long title ", count: 9))
    try SQLiteConnection(.init(path: "\(folder)/state/collector.db")).execute(
      """
      INSERT INTO records (namespace, tab, device, id, fields, version, changed_time, received_time, is_named, seq, insert_seq)
      VALUES ('shop', 'prism.command', 'd', 'q1', '{"name":"ask","state":"done","result":\(asked)}', 1, 1, 1, 1, 1, 1)
      """)
    let words = ["--namespace", "shop", "--device", "d"]
    let commands = try await Self.run(["command", "list"] + words, in: folder)
    #expect(commands.output.hasSuffix("12 reports, 40 looked at (ask --show)\n"), "\(commands.output)\(commands.error)")
    #expect(try await Self.run(["command", "list", "--json"] + words, in: folder).output.contains(asked))

    let notices = [long, "short"].enumerated().map { place, title in
      "('000000000000000\(place)', 'ops', 'e', 1, '{\"title\":\"\(title)\"}', 'dead', 1, 1, 'result: \(long)')"
    }
    try SQLiteConnection(.init(path: "\(folder)/state/fleet.db")).execute(
      "INSERT INTO notices VALUES \(notices.joined(separator: ", "))")
    let lines = try await Self.run(["notice", "list"], in: folder).lines
    let places = lines.map { line in
      ["RESULT", "result: "].compactMap { line.range(of: $0) }.first.map { line[..<$0.lowerBound].count }
    }
    #expect(lines.count == 3 && places[0] != nil && Set(places).count == 1, "\(lines)")
    #expect(lines.count { $0.contains("…") } == 1 && lines[2].contains(long.dropLast()), "\(lines)")
  }

  @Test(
    "a time or a span without its unit is refused with what to write",
    arguments: [
      ["ask", "--namespace", "shop", "--where", "device = d", "boot", "last=5"],
      ["ask", "--namespace", "shop", "--where", "device = d", "boot", "--wait", "5"],
      ["query", "--since", "5"],
    ])
  func unit(words: [String]) async throws {
    let folder = try Self.folder("state: DIR/state\nkeys: [{id: main, file: main.key}]\n")
    defer { try? FileManager.default.removeItem(atPath: folder) }  // a left folder harms no test
    let ran = try await Self.run(words, in: folder)
    #expect(ran.exitCode == 64 && ran.error.contains("is `5`") && ran.error.contains("5s, 5m, 5h"), "\(ran.error)")
  }

  @Test("ask needs no collector that runs, and takes times as people write them")
  func ask() async throws {
    let folder = try Self.folder("state: DIR/state\nkeys: [{id: main, file: main.key}]\n")
    defer { try? FileManager.default.removeItem(atPath: folder) }  // a left folder harms no test
    let times = ["last=7d", "since=2026-01-31T12:00:00Z", "until=2h"]
    let ran = try await Self.run(
      ["ask", "--namespace", "shop", "--where", "device = d", "--estimate", "boot"] + times, in: folder)
    #expect(ran.exitCode == 1 && ran.error.contains("0 devices"), "\(ran.error)")
  }

  @Test("migrate makes the tables once, and is for PostgreSQL only; query reads an empty store")
  func migrate() async throws {
    let server = try await PostgreSQLServer.shared
    let database = try await server.newDatabase()
    let folder = try Self.folder(
      "state: DIR/state\nkeys: [{id: main, file: main.key}]\nstore: \"\(server.uri(database))\"\n")
    defer { try? FileManager.default.removeItem(atPath: folder) }  // a left folder harms no test
    for _ in 0..<2 {
      let ran = try await Self.run(["migrate"], in: folder)
      #expect(ran.exitCode == 0 && ran.output.hasPrefix("the schema has version "), "\(ran.error)")
    }
    #expect(try await server.sql("SELECT count(*) FROM prism_schema", in: database) == [["1"]])
    let query = try await Self.run(["query", "--format", "csv", "--meta", "ms >= 1"], in: folder)
    #expect(
      query.exitCode == 0 && query.output.hasPrefix("id,device,") && query.output.hasSuffix("payloadBytes\r\n"),
      "\(query.error)")
    let wrong = try await Self.run(["query", "--meta", "=1"], in: folder)
    #expect(wrong.exitCode == 64 && wrong.error.contains("--meta: a condition needs keys"))
    try "state: \(folder)/state\nkeys: [{id: main, file: main.key}]\n"
      .write(toFile: "\(folder)/c.yaml", atomically: true, encoding: .utf8)
    #expect(try await Self.run(["migrate"], in: folder).exitCode == 64)
  }
}
