import Foundation
import PrismBase
import PrismProtocol
import Testing

/// A payload that is sealed on the device is read by the holder of the private key only.
@Suite struct SealedPayloadTests {
  private static let secret = "0x7f3c customer 4929-1234 in OrderView.pay\n"
  private static let payload = Data(String(repeating: secret, count: 200).utf8)
  private static let shop = """
    url: URL
    periodicTimerSecond: 1
    monitorList: [{type: crash, isRealtime: true, isUploadPayload: true}]
    """

  /// Makes a pair, and puts the public key into the namespace's file. - Returns: the path of the private key.
  private static func makePair(_ harness: Harness) async throws -> String {
    let path = "\(harness.folder)/seal.pem"
    let made = try await harness.prismctl("keys", "new", "--seal", path)
    try #require(made.exitCode == 0 && made.lines.count == 1, "\(made.error)")
    #expect(try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int == 0o600)
    try harness.write(shop + "\n" + made.output, namespace: "shop")
    return path
  }

  private static func send(_ harness: Harness, _ more: String...) async throws -> JSONValue {
    let path = "\(harness.folder)/stack"
    try payload.write(to: URL(filePath: path))
    let words = ["--namespace", "shop", "--type", "crash", "--meta", #"{"n":1}"#, "--payload", path, "--json"]
    let ran = try await harness.prismctl(["send"] + words + more)
    try FileManager.default.removeItem(atPath: path)
    try #require(ran.exitCode == 0, "\(ran.error)")
    return try JSONValue(parsing: Array(ran.output.utf8))
  }

  /// Files below the folder that hold the secret, unpacked or as gzip's stored blocks.
  private static func leaks(_ harness: Harness) throws -> [String] {
    let files = FileManager.default.enumerator(atPath: harness.folder)?.allObjects as? [String] ?? []
    return files.filter { file in
      FileManager.default.contents(atPath: "\(harness.folder)/\(file)")?.range(of: Data(secret.utf8)) != nil
    }
  }

  @Test("it is in no file of the device, and the collector with the key stores it opened, a repeated report once")
  func opened() async throws {
    try await withHarness(namespaces: ["shop": Self.shop]) { harness in
      let key = try await Self.makePair(harness)
      try await harness.startDaemon()
      _ = try await Self.send(harness)
      for _ in 0..<2 { _ = try await Self.send(harness, "--report-id", "mine-1") }
      try await harness.endDaemon(SIGKILL)
      #expect(try Self.leaks(harness) == [], "what a killed daemon leaves")
      try await harness.startCollector(["--seal-key", key])
      try await harness.startDaemon()
      try await harness.waitUntilSent(["shop"])
      let rows = try await harness.query(
        "SELECT report_id, lower(hex(payload)) FROM report WHERE kind = 'payload' ORDER BY id")
      #expect(rows.map { $0[1] } == [String](repeating: Hex.encode(Array(Self.payload)), count: 2))
      #expect(rows.first?[0].count == 32 && rows.last?[0] == "mine-1")
      let metas = try await harness.query("SELECT report_id FROM report WHERE kind = 'meta' ORDER BY id")
      #expect(metas.map { $0[0] } == rows.map { $0[0] }, "the meta and the payload have the same id")
    }
  }

  @Test("a collector without the key keeps it sealed; prismctl unseal opens it for its own report only")
  func kept() async throws {
    try await withHarness(namespaces: ["shop": Self.shop]) { harness in
      let key = try await Self.makePair(harness)
      try await harness.startCollector()
      try await harness.startDaemon()
      _ = try await Self.send(harness, "--report-id", "mine-1")
      try await harness.waitUntilSent(["shop"])
      #expect(try Self.leaks(harness) == [])
      let row = try #require(
        try await harness.query("SELECT device, lower(hex(payload)) FROM report WHERE kind = 'payload'").first)
      let (sealed, bytes) = ("\(harness.folder)/sealed", try #require(Hex.decode(row[1])))
      #expect(bytes.starts(with: Array("PSL1".utf8)))
      try Data(bytes).write(to: URL(filePath: sealed))
      let words = ["unseal", "--key", key, "--device", row[0], "--namespace", "shop", "--report-id"]
      let opened = try await harness.prismctl(words + ["mine-1", sealed])
      #expect(opened.exitCode == 0 && opened.output == String(decoding: Self.payload, as: UTF8.self))
      let refused = try await harness.prismctl(words + ["mine-2", sealed])
      #expect(refused.exitCode == 1 && refused.output.isEmpty && refused.error.contains("decryptionFailed"))
    }
  }
}
