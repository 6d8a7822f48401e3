import Foundation
import Testing

@Suite("The example of docs/packet.md")
struct DocumentedPacketTests {
  @Test("takes the packet apart and prints what the document says")
  func runs() throws {
    let path = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../docs/packet.md")
    let document = try String(contentsOf: path, encoding: .utf8)
    let program = try #require(block("python run", of: document))
    let process = Process()
    process.executableURL = URL(filePath: "/usr/bin/python3")
    process.arguments = ["-c", program]
    let output = Pipe()
    process.standardOutput = output
    try process.run()
    let bytes = try output.fileHandleForReading.readToEnd() ?? Data()
    process.waitUntilExit()
    #expect(String(decoding: bytes, as: UTF8.self) == block("json answer", of: document))
  }

  /// The lines between the fences of the first block with this info string.
  private func block(_ info: String, of document: String) -> String? {
    guard let start = document.range(of: "```\(info)\n"),
      let end = document.range(of: "```\n", range: start.upperBound..<document.endIndex)
    else { return nil }
    return String(document[start.upperBound..<end.lowerBound])
  }
}
