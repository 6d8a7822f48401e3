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

  /// Many keys, because freed memory may be written by others, and the allocator writes the first 16 bytes itself.
  @Test("keys that left the configuration are in the daemon's memory no more", .enabled(if: getuid() == 0))
  func forgotten() async throws {
    let shop = "url: URL\nkeyId: k0\ncipher: aes-256-gcm\nmonitorList: [{type: sample}]\n"
    try await withHarness(namespaces: ["shop": shop]) { harness in
      let names = (0..<64).map { "k\($0)" }
      let entries = names.map { "{id: \($0), file: \($0).key}" }.joined(separator: ", ")
      let text = try String(contentsOfFile: harness.config, encoding: .utf8)
      try text.replacing("keys: [", with: "keys: [\(entries), ")
        .write(toFile: harness.config, atomically: false, encoding: .utf8)
      let keys = try Self.writeKeys(names, harness)
      try await harness.startDaemon()
      _ = try await harness.client().report(Sample.report(1, in: "shop"))
      let process = try #require(harness.daemonProcess)
      #expect(try await Self.count(in: process, of: keys) == names.count, "the keys in force are in it")
      _ = try Self.writeKeys(names, harness)
      _ = try await harness.reload()
      try await waitUntil("they are overwritten") { try await Self.count(in: process, of: keys) == 0 }
    }
  }

  /// - Returns: the last 16 bytes of each.
  private static func writeKeys(_ names: [String], _ harness: Harness) throws -> [String] {
    try names.map { name in
      let key = (0..<32).map { _ in UInt8.random(in: 0...255) }
      let path = "\(harness.folder)/\(name).key"
      try (Hex.encode(key) + "\n").write(toFile: path, atomically: false, encoding: .utf8)
      chmod(path, 0o600)
      return Hex.encode(key.suffix(16))
    }
  }

  /// Prints how many of the words, in hexadecimal digits, are in the memory that a process can write.
  private static let search = """
    import sys
    keys, found = [bytes.fromhex(word) for word in sys.argv[2:]], set()
    with open(f"/proc/{sys.argv[1]}/maps") as maps, open(f"/proc/{sys.argv[1]}/mem", "rb", 0) as memory:
        for line in maps:
            if " rw" in line:
                first, end = (int(word, 16) for word in line.split()[0].split("-"))
                memory.seek(first)
                try: content = memory.read(end - first)
                except OSError: continue
                found |= {key for key in keys if key in content}
    print(len(found))
    """

  private static func count(in process: Int32, of keys: [String]) async throws -> Int? {
    let ran = try await Programs.run("python3", ["-c", search, "\(process)"] + keys)
    return ran.lines.first.flatMap { Int($0) }
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
