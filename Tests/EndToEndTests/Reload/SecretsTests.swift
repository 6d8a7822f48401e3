import Foundation
import Glibc
import PrismBase
import PrismClient
import PrismProtocol
import Testing

/// The output, the logs and the pages of a program never hold a secret, in any question and any failure.
@Suite struct SecretsTests {
  private static let token = "t0ken-0f-the-shop-8f1c", newToken = "an0ther-t0ken-5d2e"
  private static let environment = "p4ssw0rd-in-the-environment"
  private static let shop = """
    url: URL
    authorization: {tokenFile: shop.token}
    tls: {certFile: shop.pem, keyFile: shop.key}
    monitorList: [{type: sample, isUploadPayload: true}]
    """

  /// A token, and two certificates with their keys.
  private static func plant(_ harness: Harness) async throws {
    try (token + "\n").write(toFile: "\(harness.folder)/shop.token", atomically: true, encoding: .utf8)
    for name in ["shop", "other"] { try await CertificateMaker(folder: harness.folder).authority(name) }
  }

  private static func privateKey(_ name: String, _ harness: Harness) throws -> String {
    try String(contentsOfFile: "\(harness.folder)/\(name).key", encoding: .utf8)
  }

  /// Every secret, in every form that one could be printed in.
  private static func forms(_ harness: Harness) throws -> [String] {
    let digits = try String(contentsOfFile: "\(harness.folder)/main.key", encoding: .utf8)
      .trimmingCharacters(in: .whitespacesAndNewlines)
    let bytes = try #require(Hex.decode(digits))
    let decimal = bytes.prefix(6).map { String($0) }.joined(separator: ", ")
    let pem = try ["shop", "other"].flatMap { try privateKey($0, harness).split(separator: "\n").map { String($0) } }
    return [digits, digits.uppercased(), Base64.encode(bytes), decimal, token, newToken, environment]
      + [token, newToken].map { Base64.encode(Array($0.utf8)) } + pem.filter { !$0.hasPrefix("-") }
  }

  @Test("keys, tokens, certificates' keys and the environment are in no output of any program")
  func nothingIsTold() async throws {
    try await withHarness(namespaces: ["shop": Self.shop]) { harness in
      try await Self.plant(harness)
      let port = try Harness.freePort()
      try harness.writeDaemonFile("log: {level: debug}\nmetrics: {listen: \(port)}")
      try await harness.startCollector()
      try await harness.startDaemon()
      _ = try await harness.client().report(Sample.report(1, in: "shop", hasPayload: true, hasID: true))
      var outputs = try await Self.asked(harness)
      outputs += try await Self.asked(harness, whileWrong: true)
      let metrics = try await Programs.run("curl", ["-s", "http://127.0.0.1:\(port)/metrics"])
      outputs += [("the daemon's log", harness.daemonLog), ("/metrics", metrics.output)]
      let forms = try Self.forms(harness)
      #expect(outputs.count > 40)
      for (what, text) in outputs {
        // A report that was delivered by then is not exported.
        #expect(!text.isEmpty || what == "export", "\(what)")
        for form in forms { #expect(!text.contains(form), "\(what) tells a secret") }
      }
    }
  }

  @Test("a key that left the configuration is in the daemon's memory no more", .enabled(if: getuid() == 0))
  func forgotten() async throws {
    try await withHarness(namespaces: ["shop": "url: URL\nmonitorList: [{type: sample}]\n"]) { harness in
      try await harness.startCollector()
      try await harness.startDaemon()
      _ = try await harness.client().report(Sample.report(1, in: "shop"))
      #expect(try await harness.prismctl("flush", "--wait").exitCode == 0)
      let file = "\(harness.folder)/main.key"
      let digits = try String(contentsOfFile: file, encoding: .utf8).trimmingCharacters(in: .whitespacesAndNewlines)
      let process = try #require(harness.daemonProcess)
      let key = Data(try #require(Hex.decode(digits)))
      #expect(try Self.memory(of: process, has: key), "the key in force is in it")
      try (String(digits.reversed()) + "\n").write(toFile: file, atomically: false, encoding: .utf8)
      _ = try await harness.reload()
      try await waitUntil("it is overwritten") { try !Self.memory(of: process, has: key) }
    }
  }

  /// Whether the memory that the process can write has these bytes.
  private static func memory(of process: Int32, has bytes: Data) throws -> Bool {
    let (maps, memory) = ("/proc/\(process)/maps", open("/proc/\(process)/mem", O_RDONLY | O_CLOEXEC))
    try #require(memory >= 0)
    defer { close(memory) }
    for line in try String(contentsOfFile: maps, encoding: .utf8).split(separator: "\n") where line.contains(" rw") {
      let ends = line.prefix { $0 != " " }.split(separator: "-").compactMap { UInt64($0, radix: 16) }
      var content = Data(count: Int(ends[1] - ends[0]))
      let count = content.withUnsafeMutableBytes { pread(memory, $0.baseAddress, $0.count, off_t(ends[0])) }
      if count > 0, content.prefix(count).range(of: bytes) != nil { return true }
    }
    return false
  }

  private static func asked(_ harness: Harness) async throws -> [(String, String)] {
    var commands: [[String]] = [
      ["config", "show"], ["config", "show", "--origin"], ["config", "show", "--json", "--origin"],
      ["config", "show", harness.config], ["config", "diff", harness.config], ["status"], ["status", "--json"],
      ["explain", "shop"], ["explain", "shop", "sample"], ["trace", "n-1"], ["export"], ["network"],
      ["dead", "list", "--json"],
      ["reload"], ["--help"],
    ]
    commands += [
      "send", "status", "flush", "reload", "network", "explain", "trace", "export", "decode", "config check",
      "config show",
      "config diff", "keys new", "dead list",
    ].map { $0.split(separator: " ").map { String($0) } + ["--help"] }
    return try await run(commands, harness)
  }

  /// Each secret is in the place of a path, in a file that is taken for a configuration, or in one that is broken.
  private static func asked(_ harness: Harness, whileWrong: Bool) async throws -> [(String, String)] {
    let key = try String(contentsOfFile: "\(harness.folder)/main.key", encoding: .utf8)
    let digits = key.trimmingCharacters(in: .whitespacesAndNewlines)
    let wrong = "\(harness.folder)/wrong.yaml"
    try """
    keys: [{id: \(digits), file: \(digits)}, {id: main, file: shop.token}]
    common: {password: "${PLANTED}", REPORT_ID: "${PLANTED}"}
    log: {level: "${PLANTED}"}
    remote: {publicKey: \(digits)\(digits)00, url: "https://user:\(token)@h"}
    """.write(toFile: wrong, atomically: true, encoding: .utf8)
    var outputs = try await run(
      [
        ["config", "check", wrong], ["config", "show", wrong], ["config", "diff", wrong],
        ["config", "check", "\(harness.folder)/main.key"], ["config", "diff", "\(harness.folder)/main.key"],
        ["config", "diff", "\(harness.folder)/shop.token"], ["config", "diff", "\(harness.folder)/shop.key"],
      ], harness)
    try harness.write(shop.replacing("shop.token", with: token), namespace: "shop")
    outputs += try await run([["reload"], ["status", "--json"]], harness)
    try harness.write(shop, namespace: "shop")
    for (file, text) in [
      ("shop.token", "\(newToken)\n\(newToken)"), ("shop.key", String(try privateKey("shop", harness).dropLast(9))),
      ("shop.key", try privateKey("other", harness)),
    ] {
      let path = "\(harness.folder)/\(file)"
      let before = try String(contentsOfFile: path, encoding: .utf8)
      try text.write(toFile: path, atomically: true, encoding: .utf8)
      outputs += try await run([["reload"], ["status", "--json"]], harness)
      try before.write(toFile: path, atomically: true, encoding: .utf8)
    }
    try newToken.write(toFile: "\(harness.folder)/shop.token", atomically: true, encoding: .utf8)
    return outputs + (try await run([["config", "diff", harness.config], ["reload"]], harness))
  }

  private static func run(_ commands: [[String]], _ harness: Harness) async throws -> [(String, String)] {
    var outputs: [(String, String)] = []
    for command in commands {
      let ran = try await Programs.run(
        Programs.prismctl, ["--control", harness.control, "--ingest", harness.ingest] + command,
        environment: ["PLANTED": environment])
      outputs.append((command.joined(separator: " "), ran.output + ran.error))
    }
    return outputs
  }
}
