import Foundation
import Glibc
import PrismClient
import PrismProtocol
import Testing

/// The events that reload a daemon. It always ends with the files that were written last.
@Suite struct ReloadTests {
  private static let shop = "monitorList: [{type: sample}]\n"

  private static func shop(maxItem: Int) -> String { shop + "maxItem: \(maxItem)\n" }

  private func expect(_ harness: Harness, _ what: String, maxItem: Int?, of namespace: String = "shop") async throws {
    try await waitUntil(
      "\(what): maxItem \(String(describing: maxItem)); \(await harness.diagnosis)"
    ) {
      try await harness.inForce("maxItem", of: namespace) == maxItem.map { .int($0) }
    }
  }

  @Test("files that are written in place, renamed over, linked again, added and removed are in force by themselves")
  func watched() async throws {
    try await withHarness(namespaces: ["shop": Self.shop]) { harness in
      try await harness.startDaemon()
      let file = "\(harness.folder)/namespaces.d/shop.yaml"
      try Self.shop(maxItem: 1).write(toFile: file, atomically: false, encoding: .utf8)
      try await expect(harness, "in place", maxItem: 1)
      try harness.write(Self.shop(maxItem: 2), namespace: "shop")
      try await expect(harness, "renamed over", maxItem: 2)
      try harness.write(Self.shop(maxItem: 3), namespace: "other")
      try await expect(harness, "added", maxItem: 3, of: "other")
      unlink("\(harness.folder)/namespaces.d/other.yaml")
      try await waitUntil("the file is gone, and the namespace is as it was") {
        try await harness.status()["namespaces"]?["other"]?["isFileGone"] == true
      }
      try await expect(harness, "gone", maxItem: 3, of: "other")
      try harness.write("retired: true\n", namespace: "other")
      try await expect(harness, "retired", maxItem: nil, of: "other")
      #expect(try await harness.status()["configFaults"] == [])
    }
  }

  @Test("a mounted ConfigMap's swap of `..data` is one reload, for the daemon's file and the namespaces'")
  func configMap() async throws {
    try await withHarness(namespaces: ["shop": Self.shop]) { harness in
      let mount = try ConfigMap(harness)
      try mount.swap(to: "1", maxItem: 1)
      try mount.link()
      try await harness.startDaemon()
      #expect(try await harness.inForce("maxItem", of: "shop") == 1)
      let before = try await harness.generation()
      try mount.swap(to: "2", maxItem: 2)
      try await expect(harness, "swapped", maxItem: 2)
      #expect(try await harness.inForce("log.level") == "warning")
      #expect(try await harness.generation() == before + 1)
    }
  }

  @Test("a storm of signals, commands and writes ends with what was written last, and its commands all succeed")
  func storm() async throws {
    try await withHarness(namespaces: ["shop": Self.shop]) { harness in
      try await harness.startDaemon()
      try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask { for number in 1...60 { try harness.write(Self.shop(maxItem: number), namespace: "shop") } }
        group.addTask {
          for _ in 0..<60 {
            harness.signalDaemon(SIGHUP)
            try await Task.sleep(for: .milliseconds(5))
          }
        }
        for _ in 0..<4 { group.addTask { for _ in 0..<5 { try await harness.reload() } } }
        try await group.waitForAll()
      }
      try harness.write(Self.shop(maxItem: 77), namespace: "shop")
      let generation = try await harness.reload()
      #expect(
        try await harness.inForce("maxItem", of: "shop") == 77,
        "a reload reads what was written before it was asked for")
      #expect(try await harness.generation() == generation)
      harness.signalDaemon(SIGHUP)
      #expect(try await harness.reload() == generation, "what is in force already is no new generation")
    }
  }

  @Test("with a fault nothing of it is taken, all faults are shown, and a reload after mending takes all")
  func allOrNothing() async throws {
    try await withHarness(namespaces: ["shop": Self.shop, "other": Self.shop]) { harness in
      try await harness.startDaemon()
      let before = try await harness.generation()
      try harness.write(Self.shop(maxItem: 5), namespace: "shop")
      try harness.write(Self.shop(maxItem: 0) + "maxItems: 3\n", namespace: "other")
      let refused = try await harness.prismctl("reload")
      #expect(refused.exitCode == 78)
      let faults = ["other.yaml:2: maxItem: is 0", "other.yaml:3: maxItems: is unknown; did you mean maxItem?"]
      for fault in faults { #expect(refused.error.contains(fault), "\(refused.error)") }
      #expect(try await harness.status()["configFaults"]?.array?.count == 2)
      #expect(try await harness.generation() == before)
      #expect(try await harness.inForce("maxItem", of: "shop") == 1000)
      try harness.write(Self.shop(maxItem: 6), namespace: "other")
      let ran = try await harness.prismctl("reload")
      #expect(
        ran.lines.sorted() == [
          "configuration \(before + 1) is in force", "other: maxItem 1000 -> 6", "shop: maxItem 1000 -> 5",
        ])
      #expect(try await harness.status()["configFaults"] == [])
    }
  }

  @Test("what needs a restart is refused and says so")
  func restart() async throws {
    try await withHarness(namespaces: ["shop": Self.shop]) { harness in
      try await harness.startDaemon()
      let text = try String(contentsOfFile: harness.config, encoding: .utf8)
      let moved = text.replacing("state: \(harness.folder)/state", with: "state: \(harness.folder)/elsewhere")
      try moved.write(toFile: harness.config, atomically: true, encoding: .utf8)
      let refused = try await harness.prismctl("reload")
      #expect(refused.exitCode == 78 && refused.error.contains("restart it for this change"), "\(refused.error)")
    }
  }

  @Test("a diff says what would change and what that would do to stored rows, and changes nothing")
  func diff() async throws {
    let namespaces = ["shop": Self.shop + "appVersion: 1\n", "gone": Self.shop, "other": Self.shop]
    try await withHarness(namespaces: namespaces) { harness in
      try await harness.startDaemon()
      for name in ["shop", "gone"] {
        _ = try await harness.client().report(contentsOf: (1...3).map { Sample.report($0, in: name) })
      }
      let generation = try await harness.reload()
      let new = "\(harness.folder)/new"
      try FileManager.default.createDirectory(atPath: "\(new)/namespaces.d", withIntermediateDirectories: true)
      let daemonFile = try String(contentsOfFile: harness.config, encoding: .utf8)
      for (path, text) in [
        ("prismd.yaml", daemonFile.replacing("\(harness.folder)/state", with: "/elsewhere") + "log: {level: debug}\n"),
        ("main.key", try String(contentsOfFile: "\(harness.folder)/main.key", encoding: .utf8)),
        ("namespaces.d/shop.yaml", Self.shop + "appVersion: 2\nmaxItem: 7\n"), ("namespaces.d/added.yaml", Self.shop),
        ("namespaces.d/other.yaml", Self.shop), ("namespaces.d/gone.yaml", "retired: true\n"),
      ] { try text.write(toFile: "\(new)/\(path)", atomically: true, encoding: .utf8) }
      chmod("\(new)/main.key", 0o600)
      let ran = try await harness.prismctl("config", "diff", "\(new)/prismd.yaml")
      #expect(ran.exitCode == 0, "\(ran.error)")
      for line in [
        "prismd: log.level info -> debug", "prismd: state takes a restart", "added: added",
        "gone: removed: 3 rows stay until they expire, and are sent when it comes back",
        "shop: appVersion 1 -> 2: 3 rows would be cleared", "shop: maxItem 1000 -> 7",
      ] { #expect(ran.lines.contains(line), "\(line) is not in:\n\(ran.output)") }
      #expect(!ran.output.contains("other"))
      #expect(try await harness.generation() == generation)
      #expect(Harness.rows(try await harness.status(), "shop", "meta", "waiting") == 3)
      try "maxItem: 0\n".write(toFile: "\(new)/namespaces.d/shop.yaml", atomically: true, encoding: .utf8)
      let faulty = try await harness.prismctl("config", "diff", "\(new)/prismd.yaml")
      #expect(faulty.exitCode == 78 && faulty.error.contains("shop.yaml:1: maxItem: is 0, must be 1...1000"))
    }
  }
}

/// A folder of versions with `..data` pointing at one of them, as Kubernetes mounts a ConfigMap.
private struct ConfigMap {
  private let harness: Harness
  private let daemonFile: String

  init(_ harness: Harness) throws {
    self.harness = harness
    daemonFile = try String(contentsOfFile: harness.config, encoding: .utf8)
  }

  func swap(to version: String, maxItem: Int) throws {
    let folder = "\(harness.folder)/..\(version)"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
    let level = version == "1" ? "info" : "warning"
    try (daemonFile + "log: {level: \(level)}\n").write(
      toFile: "\(folder)/prismd.yaml", atomically: false, encoding: .utf8)
    try "monitorList: [{type: sample}]\nmaxItem: \(maxItem)\n"
      .write(toFile: "\(folder)/shop.yaml", atomically: false, encoding: .utf8)
    try FileManager.default.createSymbolicLink(
      atPath: "\(harness.folder)/..data_tmp", withDestinationPath: "..\(version)")
    rename("\(harness.folder)/..data_tmp", "\(harness.folder)/..data")
  }

  func link() throws {
    for (path, target) in [("prismd.yaml", "..data/prismd.yaml"), ("namespaces.d/shop.yaml", "../..data/shop.yaml")] {
      unlink("\(harness.folder)/\(path)")
      try FileManager.default.createSymbolicLink(atPath: "\(harness.folder)/\(path)", withDestinationPath: target)
    }
  }
}
