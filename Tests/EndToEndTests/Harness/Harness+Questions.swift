import Foundation
import PrismProtocol

extension Harness {
  /// Asks the device a question by a command of this id, which expires in a minute. It is sent until the collector has it.
  func ask(_ id: String, _ args: String) async throws {
    let expires = Int(Date().timeIntervalSince1970) * 1000 + 60_000
    let fields = #"{"name":"ask","args":\#(args),"expires":\#(expires)}"#
    let path = "http://collector/api/v1/records/shop/prism.command/\(id)?device=e2e-device"
    try await waitUntil("a question is sent") {
      let ran = try await Programs.run(
        "curl",
        [
          "-s", "-o", "/dev/null", "-w", "%{http_code}", "--unix-socket", readerSocket, "-X", "PUT", "-H",
          "Content-Type: application/json", "-d", fields, path,
        ])
      return ["200", "201", "412"].contains(ran.output)
    }
  }

  /// At the collector, by the ids of the questions.
  func answers() async throws -> [String: CommandAnswer] {
    var answers: [String: CommandAnswer] = [:]
    for row in try await query("SELECT id, fields FROM records WHERE tab = 'prism.command'") {
      answers[row[0]] = CommandAnswer(fields: try JSONValue(parsing: row[1]))
    }
    return answers
  }
}
