import PrismBase
import PrismCollector
import PrismProtocol

/// `prism-collector output …`: outputs and their dead letters, whether the collector runs or not.
enum OutputCommand {
  static let usage = """
    usage: prism-collector output list | dead NAME | requeue NAME [FIRST [LAST]] | drop NAME [FIRST [LAST]] [--json]
           [--config PATH | the flags of prism-collector]

      list     outputs of the collector that runs: name, delivered, dead letters, failures, seconds of lag, why one holds
      dead     dead letters of an output: the report's id, when, cause, whether it is to be handed on again
      requeue  hands dead letters on again, those with an id from FIRST to LAST; without them all
      drop     gives dead letters up; their reports stay stored

    Exit codes: 0, 1 there is no such output, 64 usage, 69 the store can't be reached, 78 configuration.
    """

  /// - Parameter arguments: with the operand `output`. - Returns: the exit code.
  static func run(_ arguments: Arguments) async throws(Flags.Fault) -> Int32 {
    let (words, isJSON) = (Array(arguments.operands.dropFirst()), arguments.contains("--json"))
    guard let verb = words.first, !arguments.contains("--help") else {
      print(usage)
      return arguments.contains("--help") ? 0 : 64
    }
    let counts = ["list": 1...1, "dead": 2...2, "requeue": 2...4, "drop": 2...4]
    guard counts[verb]?.contains(words.count) == true else {
      throw Flags.Fault(
        exitCode: 64, message: "output: it needs `list`, or `dead`, `requeue` or `drop` and a name\n\(usage)")
    }
    let ids = words.dropFirst(2).map { Int($0) }
    guard !ids.contains(nil) else {
      throw Flags.Fault(
        exitCode: 64, message: "output: FIRST and LAST are ids of reports, as `output dead` prints them")
    }
    try await CollectorDesk.open(Flags(arguments).options) { desk throws(CollectorDesk.Fault) in
      switch verb {
      case "list": list(try await desk.get("/fleet")["outputs"]?.array ?? [], isJSON)
      case "dead": try await dead(of: words[1], desk, isJSON)
      default:
        var body = [JSONValue.Member("action", .string(verb))]
        for (name, id) in zip(["first", "last"], ids) { body.append(.init(name, .int(id ?? 0))) }
        let answer = try await desk.post(path(of: words[1]), .object(body))
        print("\(answer["changed"]?.int ?? 0) dead letters")
      }
    }
    return 0
  }

  private static func path(of name: String) -> String {
    "/outputs/\(name.utf8.allSatisfy { $0.isASCIIAlphanumeric || $0 == UInt8(ascii: "-") } ? name : "-")/dead"
  }

  private static func list(_ outputs: [JSONValue], _ isJSON: Bool) {
    for output in outputs {
      let numbers = ["delivered", "dead", "failures", "lagSeconds"].map { output[$0]?.int.map(String.init) }
      CollectorDesk.printRow(output, [output["name"]?.string] + numbers + [output["holds"]?.string], isJSON)
    }
  }

  private static func dead(of name: String, _ desk: CollectorDesk, _ isJSON: Bool) async throws(CollectorDesk.Fault) {
    var after: Int? = 0
    while let from = after {
      let page = try await desk.get(path(of: name), query: "limit=1000&after=\(from)")
      for letter in page["dead"]?.array ?? [] {
        let texts = [
          letter["id"]?.int.map(String.init), letter["time"]?.int.map { RFC3339.text(unixMilliseconds: Int64($0)) },
          letter["cause"]?.string, letter["requeued"]?.bool == true ? "requeued" : nil,
        ]
        CollectorDesk.printRow(letter, texts, isJSON)
      }
      after = page["next"]?.int
    }
  }
}
