import Foundation
import Testing

@Suite struct WalkTests {
  @Test("the walks of docs/architecture.md are in the code, and enter no more rooms than they may") func walksAreShort()
    throws
  {
    let (script, output, faults) = (Process(), Pipe(), Pipe())
    script.executableURL = URL(filePath: "\(SourceTree.root)/scripts/count-walks")
    (script.standardOutput, script.standardError) = (output, faults)
    try script.run()
    let counted = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    let said = String(decoding: faults.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    script.waitUntilExit()
    #expect(script.terminationStatus == 0, "\(said)")
    #expect(
      counted == """
        A report on its way in: 6 of 8
        A report on its way out: 7 of 7
        A configuration: 7 of 9
        An answer: 4 of 4

        """)
  }
}
