import PrismBase
import PrismControl
import PrismProtocol
import Testing

@testable import prismctl

@Suite("Every command")
struct CommandTests {
  /// Those whose output is not the daemon's answer: a file, a script, a screen, another program's, or NDJSON in any case.
  private static let withoutJSON = ["run", "export", "keys new", "enroll", "decode", "unseal", "completion", "top"]

  @Test("has --json, unless its output can't be JSON")
  func json() {
    for command in commands where !Self.withoutJSON.contains(command.name) {
      #expect(command.options.contains { $0.name == "--json" }, "\(command.name)")
    }
  }

  @Test("has an example that is a command line of its own, and help within 80 columns but for what an option says")
  func examples() async throws {
    for command in commands {
      let example = try #require(command.example)
      #expect(example.contains("prismctl \(command.name)"), "\(command.name): \(example)")
      #expect(program.help(of: command).contains(example))
      #expect(program.usage(of: command).count <= 80)
    }
  }

  @Test("is in the document of the control protocol with the request that it makes")
  func documented() throws {
    let page = try HeldFile.text("docs/control-protocol.md")
    for command in ControlRequest.Command.allCases {
      let isNamed = page.contains("\"command\":\"\(command.rawValue)\"") || page.contains("`\(command.rawValue)`")
      #expect(isNamed, "\(command.rawValue)")
    }
  }
}
