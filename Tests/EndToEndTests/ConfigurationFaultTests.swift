import Foundation
import PrismTestSupport
import Testing

@Suite struct ConfigurationFaultTests {
  private static let daemon = """
    ingest: {mode: 0888}
    durability: sometimes
    keys: [{id: main, file: nowhere.key}]
    """
  private static let namespace = """
    maxItem: 0
    monitorLst: [{type: a}]
    monitorList: [{type: a}]
    """

  /// Texts that YAML 1.1 read in a surprising way, or that harm their reader.
  private static let traps: [(what: String, text: String, start: String)] = [
    ("a tab", "log:\n\tlevel: info\n", "2: YAML: "), ("an anchor", "state: &here /tmp/a\n", "1: YAML: "),
    ("an alias", "state: *here\n", "1: YAML: "), ("a merge key", "log:\n  <<: {level: info}\n", "2: YAML: "),
    ("a key twice", "state: /tmp/a\nstate: /tmp/b\n", "2: YAML: "),
    ("no as a value", "log: {level: no}\n", "1: log.level: is no, must be"),
    ("an octal number", "ingest:\n  maxConnections: 0100\n", "2: ingest.maxConnections: is 0100, must be"),
    ("a scalar of 1 MB", "device:\n  id: \(String(repeating: "x", count: 1_000_000))\n", "2: "),
    ("deep nesting", "keys: \(String(repeating: "[", count: 20_000))\n", "1: YAML: "),
    (
      "a billion laughs", "a: &a [lol]\n" + (1...9).map { "b\($0): &b\($0) [*a, *a, *a, *a]\n" }.joined(), "1: YAML: "
    ),
  ]

  @Test(
    "YAML's traps are faults with file and line, each in one short line",
    arguments: traps.map(\.what),
    [[Programs.prismd, "check", "--config"], [Programs.prismctl, "config", "check"]])
  func trap(what: String, command: [String]) async throws {
    let trap = try #require(Self.traps.first { $0.what == what })
    let folder = TemporaryFolder.make()
    defer { try? FileManager.default.removeItem(atPath: folder) }  // a left folder harms no test
    let file = "\(folder)/prismd.yaml"
    try trap.text.write(toFile: file, atomically: true, encoding: .utf8)
    let ran = try await Programs.run(command[0], Array(command.dropFirst()) + [file])
    #expect(ran.exitCode == 78)
    let lines = (ran.output + ran.error).split(separator: "\n")
    #expect(lines.first?.hasPrefix("\(file):\(trap.start)") == true, "\(lines.first ?? "nothing")")
    #expect(lines.allSatisfy { $0.utf8.count < 400 })
  }

  @Test(
    "five faults are five lines with file and line, and exit code 78, in each program that checks",
    arguments: [
      [Programs.prismd, "check", "--config"], [Programs.prismd, "--config"],
      [Programs.prismctl, "config", "check"],
    ]) func allFaultsAtOnce(command: [String]) async throws
  {
    let folder = TemporaryFolder.make()
    defer { try? FileManager.default.removeItem(atPath: folder) }  // a left folder harms no test
    let file = "\(folder)/prismd.yaml"
    try FileManager.default.createDirectory(atPath: "\(folder)/namespaces.d", withIntermediateDirectories: true)
    try Self.daemon.write(toFile: file, atomically: true, encoding: .utf8)
    try Self.namespace.write(toFile: "\(folder)/namespaces.d/shop.yaml", atomically: true, encoding: .utf8)
    let ran = try await Programs.run(command[0], Array(command.dropFirst()) + [file])
    #expect(ran.exitCode == 78)
    let lines = (ran.output + ran.error).split(separator: "\n").map { String($0) }
    let expected = [
      "\(file):1: ingest.mode: ", "\(file):2: durability: ", "\(file):3: keys[0].file: ",
      "\(folder)/namespaces.d/shop.yaml:1: maxItem: ", "\(folder)/namespaces.d/shop.yaml:2: monitorLst: ",
    ]
    try #require(lines.count == expected.count, "\(ran.output)\(ran.error)")
    for (line, start) in zip(lines, expected) { #expect(line.hasPrefix(start), "\(line)") }
  }
}
