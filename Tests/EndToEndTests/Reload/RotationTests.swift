import Foundation
import Glibc
import PrismClient
import PrismProtocol
import Testing

/// Tokens and keys that change while the daemon runs, as a mounted Secret changes: by a swap of `..data`.
@Suite struct RotationTests {
  private static let shop = """
    url: URL
    periodicTimerSecond: 1
    authorization: {tokenFile: token}
    monitorList: [{type: sample}]
    """

  private func swap(_ harness: Harness, to version: String, token: String) throws {
    let folder = "\(harness.folder)/..\(version)"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
    try token.write(toFile: "\(folder)/token", atomically: false, encoding: .utf8)
    try FileManager.default.createSymbolicLink(atPath: "\(harness.folder)/..tmp", withDestinationPath: "..\(version)")
    rename("\(harness.folder)/..tmp", "\(harness.folder)/..data")
  }

  private func expectArrived(_ harness: Harness, _ numbers: [Int]) async throws {
    try await waitUntil("\(numbers) arrive", otherwise: harness.daemonLog) {
      try await harness.arrived("shop", "meta").map(\.number).sorted() == numbers
    }
  }

  private func send(_ harness: Harness, _ number: Int) async throws {
    _ = try await harness.client().report(Sample.report(number, in: "shop"))
  }

  @Test("a token that is swapped is used by itself; with a bad new one the old one stays, and status names the fault")
  func token() async throws {
    try await withHarness(namespaces: ["shop": Self.shop]) { harness in
      let tokens = "\(harness.folder)/tokens"
      try "first-token-of-tests\n".write(toFile: tokens, atomically: true, encoding: .utf8)
      chmod(tokens, 0o600)
      try await rotate(harness, tokens)
    }
  }

  private func rotate(_ harness: Harness, _ tokens: String) async throws {
    try swap(harness, to: "1", token: "wrong\n")
    try FileManager.default.createSymbolicLink(
      atPath: "\(harness.folder)/token", withDestinationPath: "..data/token")
    try await harness.startCollector(["--token-file", tokens])
    try await harness.startDaemon()
    try await send(harness, 1)
    try await waitUntil("the wrong token is refused") {
      try await harness.status()["namespaces"]?["shop"]?["lastFailure"]?["status"] == 401
    }
    try swap(harness, to: "2", token: "first-token-of-tests\n")
    try await expectArrived(harness, [1])
    try swap(harness, to: "3", token: "\n")
    try await waitUntil("the empty token is a fault") {
      let faults = try await harness.status()["configFaults"]?.array ?? []
      return faults.contains { $0.string?.contains("authorization.tokenFile: names a file that has no token") == true }
    }
    try await send(harness, 2)
    try await expectArrived(harness, [1, 2])
    #expect(harness.daemonLog.contains("the configuration was not taken"))
    try swap(harness, to: "4", token: "first-token-of-tests\n")
    try await waitUntil("mended") { try await harness.status()["configFaults"] == [] }
  }

  @Test("a packet's key that is swapped is used by itself, and rows that the collector could not read are not lost")
  func key() async throws {
    try await withHarness(namespaces: ["shop": "url: URL\nperiodicTimerSecond: 1\nmonitorList: [{type: sample}]\n"]) {
      harness in
      try await harness.startCollector()
      let right = try String(contentsOfFile: "\(harness.folder)/main.key", encoding: .utf8)
      func write(_ digits: String) throws {
        try digits.write(toFile: "\(harness.folder)/new.key", atomically: true, encoding: .utf8)
        chmod("\(harness.folder)/new.key", 0o600)
        rename("\(harness.folder)/new.key", "\(harness.folder)/main.key")
      }
      try await harness.startDaemon()
      try await send(harness, 1)
      try await expectArrived(harness, [1])
      let before = try await harness.generation()
      try write("not a key")
      try await waitUntil("the bad key is a fault") {
        try await harness.status()["configFaults"]?.array?.isEmpty == false
      }
      try await send(harness, 2)
      try await expectArrived(harness, [1, 2])
      try write(right)
      try await waitUntil("mended") { try await harness.status()["configFaults"] == [] }
      #expect(try await harness.generation() == before, "the key that is in force was there all the time")
    }
  }
}
