import PrismBase
import PrismCollector
import PrismProtocol

extension Command {
  /// `prism-collector notice …`: notices and their receivers.
  static let notice = group(
    "notice",
    [
      (
        "list", "", "the newest 1,000 notices: id, when, receiver, state, attempts, title, the end of the last attempt"
      ),
      (
        "test", "RECEIVER",
        "add a notice that says that it is a test; the collector delivers it within seconds, if it runs"
      ),
      ("send", "ID", "send a dead letter again"),
      ("drop", "ID", "end the attempts to deliver one, and ask first"),
    ], options: [json, .yes]
  ) { line throws(Failure) in
    if line.verb == "drop" { try Notices.confirm(line) }
    return try await line.ask { client throws(Failure) in
      switch line.verb {
      case "list":
        return Listing(line, "id time receiver state attempts title result").all(
          try await client.get("/notices", query: "limit=1000")["notices"])
      case "test":
        let notice = try await client.post("/notices/test", ["receiver": .string(line.operands[0])])
        print((notice["id"]?.string ?? "").printable)
      default: _ = try await client.post("/notices/\(try Notices.id(line.operands[0]))", ["action": .string(line.verb)])
      }
      return 0
    }
  }
}

private enum Notices {
  static func confirm(_ line: Invocation) throws(Failure) {
    try line.confirm("give up notice \(id(line.operands[0])) for good?", else: "nothing was given up")
  }

  static func id(_ text: String) throws(Failure) -> String {
    guard text.utf8.count == 16, text.utf8.allSatisfy({ "0123456789abcdef".utf8.contains($0) }) else {
      throw Failure(Failure.no, "an id has 16 hexadecimal digits, as `notice list` prints it")
    }
    return text
  }
}
