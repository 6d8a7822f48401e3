import PrismBase
import PrismCollector
import PrismProtocol

/// `prism-collector notice …`: notices and their receivers, whether the collector runs or not.
enum NoticeCommand {
  static let usage = """
    usage: prism-collector notice list | test RECEIVER | send ID | drop ID [--json] [--config PATH | the flags of
           prism-collector]

      list  the newest 1,000: id, when, receiver, state, attempts, the end of the last one, title; with --json a line of JSON
            each
      test  adds a notice that says that it is a test. The collector delivers it within seconds, if it runs
      send  sends a dead letter again
      drop  ends the attempts to deliver one

    Exit codes: 0, 1 there is no such receiver or notice, 64 usage, 69 the store can't be reached, 78 configuration.
    """

  /// - Parameter arguments: with the operand `notice`. - Returns: the exit code.
  static func run(_ arguments: Arguments) async throws(Flags.Fault) -> Int32 {
    let words = Array(arguments.operands.dropFirst())
    guard let verb = words.first, !arguments.contains("--help") else {
      print(usage)
      return arguments.contains("--help") ? 0 : 64
    }
    guard verb == "list" ? words.count == 1 : ["test", "send", "drop"].contains(verb) && words.count == 2 else {
      throw Flags.Fault(
        exitCode: 64, message: "notice: it needs `list`, or `test`, `send` or `drop` and a name\n\(usage)")
    }
    try await CollectorDesk.open(Flags(arguments).options) { desk throws(CollectorDesk.Fault) in
      switch verb {
      case "list": list(try await desk.get("/notices", query: "limit=1000"), isJSON: arguments.contains("--json"))
      case "test":
        let notice = try await desk.post("/notices/test", ["receiver": .string(words[1])])
        print((notice["id"]?.string ?? "").printable)
      default: _ = try await desk.post("/notices/\(try id(words[1]))", ["action": .string(verb)])
      }
    }
    return 0
  }

  private static func id(_ text: String) throws(CollectorDesk.Fault) -> String {
    guard text.utf8.count == 16, text.utf8.allSatisfy({ "0123456789abcdef".utf8.contains($0) }) else {
      throw CollectorDesk.Fault(message: "an id has 16 hexadecimal digits, as `notice list` prints it", exitCode: 1)
    }
    return text
  }

  private static func list(_ list: JSONValue, isJSON: Bool) {
    for notice in list["notices"]?.array ?? [] {
      let texts = [
        notice["id"]?.string, notice["time"]?.int.map { RFC3339.text(unixMilliseconds: Int64($0)) },
        notice["receiver"]?.string, notice["state"]?.string, notice["attempts"]?.int.map(String.init),
        notice["result"]?.string, notice["title"]?.string,
      ]
      CollectorDesk.printRow(notice, texts, isJSON)
    }
  }
}
