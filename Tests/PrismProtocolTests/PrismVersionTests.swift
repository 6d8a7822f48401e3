import PrismProtocol
import Testing

@Suite struct PrismVersionTests {
  @Test(
    "a program prints its version, and its commit where that is known",
    arguments: [("", ""), ("1a2b3c4d", " (1a2b3c4d)")])
  func line(commit: String, end: String) {
    #expect(PrismVersion.line(of: "prismd", commit: commit) == "prismd \(PrismVersion.current)\(end)")
  }
}
