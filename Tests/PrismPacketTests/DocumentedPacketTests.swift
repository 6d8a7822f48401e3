import Foundation
import Testing

@Suite("The examples of docs/packet.md and docs/records.md")
struct DocumentedPacketTests {
  @Test(
    "take the packet apart and print what the document says",
    arguments: [
      ("packet", "python run", "/usr/bin/python3", "json answer"),
      ("packet", "sh run", "/bin/sh", "json answer of the shell"),
      ("packet", "sh run of a sealed payload", "/bin/sh", "text answer of the sealed payload"),
      ("records", "python run of records", "/usr/bin/python3", "json answer of records"),
    ])
  func runs(page: String, language: String, interpreter: String, answer: String) throws {
    let path = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../docs/\(page).md")
    let document = try String(contentsOf: path, encoding: .utf8)
    let program = try #require(block(language, of: document))
    let process = Process()
    process.executableURL = URL(filePath: interpreter)
    process.arguments = ["-c", program]
    let output = Pipe()
    process.standardOutput = output
    try process.run()
    let bytes = try output.fileHandleForReading.readToEnd() ?? Data()
    process.waitUntilExit()
    let printed = String(decoding: bytes, as: UTF8.self)
    #expect(printed.trimmingCharacters(in: .newlines) == block(answer, of: document)?.trimmingCharacters(in: .newlines))
  }

  /// The lines between the fences of the first block with this info string.
  private func block(_ info: String, of document: String) -> String? {
    guard let start = document.range(of: "```\(info)\n"),
      let end = document.range(of: "```\n", range: start.upperBound..<document.endIndex)
    else { return nil }
    return String(document[start.upperBound..<end.lowerBound])
  }
}
