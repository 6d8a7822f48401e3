import PrismBase
import PrismCollector
import PrismProtocol

extension Command {
  /// `prism-collector output …`: outputs and their dead letters.
  static let output = group(
    "output",
    [
      (
        "list", "",
        "outputs of the collector that runs: name, delivered, dead letters, failures, seconds of lag, why one holds"
      ),
      ("dead", "NAME", "dead letters of an output: the report's id, when, whether it is to be handed on again, cause"),
      (
        "requeue", "NAME [FIRST] [LAST]",
        "hand dead letters on again, those with an id from FIRST to LAST; without them all"
      ),
      ("drop", "NAME [FIRST] [LAST]", "give dead letters up, and ask first; their reports stay stored"),
    ], options: [json, .yes]
  ) { line throws(Failure) in
    let ids = line.operands.dropFirst().map { Int($0) }
    guard !ids.contains(nil) else {
      throw .usage("output: FIRST and LAST are ids of reports, as `output dead` prints them")
    }
    if line.verb == "drop" { try Outputs.confirm(line, ids) }
    return try await line.ask { client throws(Failure) in
      switch line.verb {
      case "list":
        return Listing(line, "name delivered dead failures lagSeconds holds").all(
          try await client.get("/fleet")["outputs"])
      case "dead":
        let listing = Listing(line, "id time requeued cause")
        try await client.pages(Outputs.path(of: line.operands[0]), of: "dead") { letter in
          let again = letter["requeued"]?.bool == true ? "yes" : "no"
          return listing.add(letter, [letter.shown("id"), letter.shown("time"), again, letter.shown("cause")])
        }
        return listing.end()
      default:
        var body = [JSONValue.Member("action", .string(line.verb))]
        for (name, id) in zip(["first", "last"], ids) { body.append(.init(name, .int(id ?? 0))) }
        let answer = try await client.post(Outputs.path(of: line.operands[0]), .object(body))
        print("\(answer["changed"]?.int ?? 0) dead letters")
      }
      return 0
    }
  }
}

private enum Outputs {
  static func confirm(_ line: Invocation, _ ids: [Int?]) throws(Failure) {
    let range = zip([" from ", " to "], ids).map { "\($0)\($1 ?? 0)" }.joined()
    let which = (ids.isEmpty ? "all " : "") + "dead letters" + range
    try line.confirm("delete \(which) of \(line.operands[0].printable) for good?", else: "nothing was deleted")
  }

  static func path(of name: String) -> String {
    "/outputs/\(name.utf8.allSatisfy { $0.isASCIIAlphanumeric || $0 == UInt8(ascii: "-") } ? name : "-")/dead"
  }
}
