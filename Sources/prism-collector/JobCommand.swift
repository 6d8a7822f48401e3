import PrismBase
import PrismCollector
import PrismProtocol

extension Command {
  /// `prism-collector job …`: the jobs of `command send --where`, and of the API.
  static let job = group(
    "job",
    [
      (
        "list", "",
        """
        the newest 500 jobs, which `command send --where EXPR` makes
        Their ids, when, namespaces, states, devices that wait, got it, carried it out, and failed, expressions.
        """
      ),
      ("show", "ID", "the devices of a job: device, progress, when, result"),
      ("pause", "ID", "give it to no further device"),
      ("resume", "ID", "go on with it, also after too many failed"),
      ("cancel", "ID", "end it; devices that have it carry it out"),
    ], options: [json]
  ) { line throws(Failure) in
    try await line.ask { client throws(Failure) in
      switch line.verb {
      case "list":
        return Listing(
          line, "id madeTime namespace state devices.waiting devices.sent devices.done devices.failed where"
        ).all(try await client.get("/jobs")["jobs"])
      case "show":
        let listing = Listing(line, "device progress changedTime result")
        try await client.pages("/jobs/\(line.operands[0].percentEncoded)", of: "devices") { listing.add($0) }
        return listing.end()
      default: _ = try await client.post("/jobs/\(line.operands[0].percentEncoded)", ["action": .string(line.verb)])
      }
      return 0
    }
  }
}
