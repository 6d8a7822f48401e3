import Foundation
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

  @Test(
    "five faults are five lines with file and line, and exit code 78, whoever checks",
    arguments: [
      [Programs.prismd, "--check-config", "--config"], [Programs.prismd, "--config"],
      [Programs.prismctl, "config", "check"],
    ]) func allFaultsAtOnce(command: [String]) async throws
  {
    let folder = try Programs.temporaryFolder()
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
