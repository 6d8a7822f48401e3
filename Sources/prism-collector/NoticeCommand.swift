import PrismBase
import PrismCollector
import PrismProtocol

extension CollectorCommand {
  /// `prism-collector notice …`: notices and their receivers.
  static let notice = CollectorCommand(
    name: "notice", verbs: ["list": 0...0, "test": 1...1, "send": 1...1, "drop": 1...1],
    options: answersAsJSON + [.yes], usage: Notices.usage
  ) { line throws(Fault) in
    if line.verb == "drop" { try Notices.confirm(line) }
    return try await line.ask { desk throws(Fault) in
      switch line.verb {
      case "list":
        return Listing(line, "id time receiver state attempts title result").all(
          try await desk.get("/notices", query: "limit=1000")["notices"])
      case "test":
        let notice = try await desk.post("/notices/test", ["receiver": .string(line.operands[0])])
        print((notice["id"]?.string ?? "").printable)
      default: _ = try await desk.post("/notices/\(try Notices.id(line.operands[0]))", ["action": .string(line.verb)])
      }
      return 0
    }
  }
}

private enum Notices {
  static let usage = """
    usage: prism-collector notice list | test RECEIVER | send ID | drop ID [--yes] [--json] [--config PATH |
           the flags of prism-collector]

      list  the newest 1,000: id, when, receiver, state, attempts, title, the end of the last one; with --json a line of JSON
            each, with the whole title
      test  adds a notice that says that it is a test. The collector delivers it within seconds, if it runs
      send  sends a dead letter again
      drop  ends the attempts to deliver one, and asks first
      --yes don't ask; needed without a terminal

    Exit codes: 0, 1 there is no such receiver or notice or the answer is not y, 64 usage, 69 the store can't be reached, 78 configuration.
    """

  static func confirm(_ line: CollectorLine) throws(Fault) {
    try line.confirm("give up notice \(id(line.operands[0])) for good?", else: "nothing was given up")
  }

  static func id(_ text: String) throws(Fault) -> String {
    guard text.utf8.count == 16, text.utf8.allSatisfy({ "0123456789abcdef".utf8.contains($0) }) else {
      throw Fault(message: "an id has 16 hexadecimal digits, as `notice list` prints it", exitCode: 1)
    }
    return text
  }
}
