import Foundation
import Testing

@Suite("Figures of the pages")
struct FigureTests {
  @Test("the README's facts and the table of docs/performance.md are those of one run's JSON")
  func pages() throws {
    let (script, faults) = (Process(), Pipe())
    script.executableURL = URL(filePath: "\(SourceTree.root)/scripts/figures")
    (script.arguments, script.standardError) = (["--check"], faults)
    try script.run()
    let said = String(decoding: faults.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    script.waitUntilExit()
    #expect(script.terminationStatus == 0, "\(said)")
  }
}
