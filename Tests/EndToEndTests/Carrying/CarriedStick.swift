import Foundation
import Glibc
import PrismPacket
import PrismProtocol
import Synchronization
import Testing

/// A folder that is carried between a daemon and its collector.
final class CarriedStick: Sendable {
  private let harness: Harness
  private let hasNetwork = Mutex(false)
  private var folder: String { "\(harness.folder)/stick" }
  private var receiptsPath: String { "\(folder)/\(CarriedAnswer.fileName)" }

  init(_ harness: Harness) { self.harness = harness }

  /// - Returns: the packets that were written.
  func carry() async throws -> Int {
    let ran = try await harness.prismctl("carry", "--to", folder, "--json")
    try #require(ran.exitCode == 0, "\(ran.error)")
    return try JSONValue(parsing: Array(ran.output.utf8))["carried"]?["packets"]?.int ?? 0
  }

  func importAll() async throws -> Ran {
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    return try await Programs.run(
      Programs.collector,
      ["import", folder, "--key", "main=\(harness.folder)/main.key", "--state", harness.collectorState])
  }

  func settle() async throws -> Ran {
    guard FileManager.default.fileExists(atPath: receiptsPath) else { return Ran(exitCode: 0, output: "", error: "") }
    return try await harness.prismctl("carry", "--settle", folder)
  }

  /// Nothing listens at the daemon's url from now on.
  func cutNetwork() async throws {
    hasNetwork.withLock { $0 = false }
    try await harness.endCollector(SIGTERM)
  }

  func toggleNetwork() async throws {
    let isThere = hasNetwork.withLock { isThere in
      isThere.toggle()
      return isThere
    }
    if isThere { try await harness.startCollector() } else { try await harness.endCollector(SIGTERM) }
  }

  /// A stick that was lost, and another one.
  func clear() throws {
    if FileManager.default.fileExists(atPath: folder) { try FileManager.default.removeItem(atPath: folder) }
  }

  func metaFiles() throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: folder).filter { $0.contains("-meta-") }.sorted()
      .map { "\(folder)/\($0)" }
  }

  func packets() throws -> [CarriedPacket] {
    try metaFiles().map { try CarriedPacket(fileBytes: Array(try Data(contentsOf: URL(filePath: $0)))) }
  }

  func receipts() throws -> [CarriedAnswer] {
    try String(contentsOfFile: receiptsPath, encoding: .utf8).split(separator: "\n").map { line in
      try #require(CarriedAnswer(json: try JSONValue(parsing: Array(line.utf8))))
    }
  }

  func write(_ answers: [CarriedAnswer]) throws {
    try answers.map { $0.json.text + "\n" }.joined().write(toFile: receiptsPath, atomically: true, encoding: .utf8)
  }
}
