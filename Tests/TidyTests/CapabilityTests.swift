import Foundation
import Testing

/// docs/migrating.md says what prism can, and what it can't.
@Suite("The page that decides") struct CapabilityTests {
  private struct Row {
    let can: String
    let with: String
  }

  private static func rows() throws -> [Row] {
    let page = try #require(SourceTree.read("docs/migrating.md"))
    let section = try #require(page.split(separator: "\n## ").first { $0.hasPrefix("Decide") })
    return section.split(separator: "\n").filter { $0.hasPrefix("| ") }.dropFirst(2).map { line in
      let cells = line.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
      return Row(can: cells[1], with: cells[2])
    }
  }

  private static func properties(_ schema: String) throws -> [String: Any] {
    let text = try #require(SourceTree.read("config/\(schema).schema.json"))
    let document = try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any]
    return try #require(document?["properties"] as? [String: Any])
  }

  private static func names(_ cell: String) -> [String] { cell.matches(of: /`(\w+)`/).map { String($0.1) } }

  @Test("each key that it names is one of the daemon's, a namespace's or the collector's, or a kind of output")
  func keysExist() throws {
    let schemas = try ["prismd", "namespace", "collector"].map(Self.properties)
    let known = Set(schemas.flatMap(\.keys)).union(try Self.outputs())
    let rows = try Self.rows()
    try #require(rows.count > 15)
    for row in rows where !row.can.hasPrefix("no") {
      let names = Self.names(row.with)
      #expect(!names.isEmpty || row.with.contains(".md"), "\(row.with)")
      for name in names { #expect(known.contains(name), "\(name) is no key") }
    }
  }

  /// The kinds of outputs of the collector.
  private static func outputs() throws -> [String] {
    let text = try #require(SourceTree.read("Sources/PrismConfig/Keys/OutputKeys.swift"))
    let kinds = try #require(text.firstMatch(of: /let kinds = \[([^\]]+)\]\s+\.filter/)?.1)
    return kinds.matches(of: /"(\w+)"/).map { String($0.1) }
  }

  @Test("each input of the daemon and each kind of output of the collector is in it, and is not denied")
  func nothingIsMissing() throws {
    let outputs = try Self.outputs()
    try #require(outputs.count > 2)
    let inputs = ["ingest", "otlp", "forward", "statsd", "syslog", "journal", "host", "crashSpool"]
    let others: Set = [
      "control", "state", "memory", "durability", "limits", "device", "common", "keys", "allowPlain", "network",
      "remote",
      "commands", "ask", "metrics", "log",
    ]
    #expect(try Set(Self.properties("prismd").keys) == others.union(inputs), "is a new key an input?")
    let named = Set(try Self.rows().filter { !$0.can.hasPrefix("no") }.flatMap { Self.names($0.with) })
    for name in inputs + outputs { #expect(named.contains(name), "\(name) is not in docs/migrating.md") }
  }
}
