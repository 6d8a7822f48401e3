import Dispatch
import Foundation
import PrismConfig
import PrismProtocol
import Testing

@Suite("Examples of docs/ingest-protocol.md")
struct DocumentedExamplesTests {
  struct Example: Sendable, CustomTestStringConvertible {
    let language: String
    let code: String
    let answer: [String]
    var testDescription: String { String(code.prefix(60)) }
  }

  static let examples: [Example] = {
    let document = URL(filePath: #filePath).deletingLastPathComponent()
      .appending(path: "../../../docs/ingest-protocol.md")
    guard let text = try? String(contentsOf: document, encoding: .utf8) else { return [] }
    var blocks: [(info: String, lines: [String])] = []
    var isInside = false
    for line in text.components(separatedBy: "\n") {
      if line.hasPrefix("```") {
        if !isInside { blocks.append((String(line.dropFirst(3)), [])) }
        isInside.toggle()
      } else if isInside {
        blocks[blocks.count - 1].lines.append(line)
      }
    }
    return zip(blocks, blocks.dropFirst()).compactMap { block, next in
      guard block.info.hasSuffix(" run"), next.info == "json answer" else { return nil }
      return Example(
        language: String(block.info.dropLast(4)), code: block.lines.joined(separator: "\n"), answer: next.lines)
    }
  }()

  @Test("there are some, in shell and Python")
  func areThere() {
    #expect(Self.examples.count >= 8)
    #expect(Set(Self.examples.map(\.language)) == ["sh", "python"])
  }

  @Test("each answers as the document says", arguments: examples)
  func answersAsDocumented(example: Example) async throws {
    let withCrashes: (inout Snapshot) -> Void = {
      $0.namespaces[.prism]?.monitorList.append(MonitoredType(.appCrash, isUploadPayload: true))
    }
    try await withIngestRig(withCrashes) { rig in
      let output = try await Self.run(example, socket: rig.path)
      let lines = output.split(separator: "\n").map { String($0) }
      #expect(lines.count == example.answer.count, "\(output)")
      for (line, pattern) in zip(lines, example.answer) { #expect(Self.matches(line, pattern), "\(line)") }
    }
  }

  /// `…` matches anything.
  private static func matches(_ line: String, _ pattern: String) -> Bool {
    let parts = pattern.components(separatedBy: "…")
    guard line.hasPrefix(parts[0]), line.hasSuffix(parts[parts.count - 1]) else { return false }
    var rest = line[...]
    for part in parts where !part.isEmpty {
      guard let found = rest.range(of: part) else { return false }
      rest = rest[found.upperBound...]
    }
    return parts.count > 1 || line == pattern
  }

  private static func run(_ example: Example, socket: String) async throws -> String {
    let process = Process()
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments = example.language == "sh" ? ["sh", "-c", example.code] : ["python3", "-c", example.code]
    process.environment = ProcessInfo.processInfo.environment.merging(["PRISM_INGEST": socket]) { $1 }
    let pipe = Pipe()
    process.standardOutput = pipe
    try process.run()
    return await withCheckedContinuation { continuation in
      DispatchQueue(label: "prism.test.example").async {
        let data = pipe.fileHandleForReading.readDataToEndOfFile()
        continuation.resume(returning: String(decoding: data, as: UTF8.self))
      }
    }
  }
}
