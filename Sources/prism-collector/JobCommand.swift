import PrismBase
import PrismCollector
import PrismProtocol

extension CollectorCommand {
  /// `prism-collector job …`: the jobs of `command send --where`, and of the API.
  static let job = CollectorCommand(
    name: "job", verbs: ["list": 0...0, "show": 1...1, "pause": 1...1, "resume": 1...1, "cancel": 1...1],
    options: answersAsJSON, usage: Jobs.usage
  ) { line throws(Fault) in
    try await line.ask { desk throws(Fault) in
      switch line.verb {
      case "list":
        return Listing(
          line, "id madeTime namespace state devices.waiting devices.sent devices.done devices.failed where"
        ).all(try await desk.get("/jobs")["jobs"])
      case "show":
        let listing = Listing(line, "device progress changedTime result")
        try await desk.pages("/jobs/\(line.operands[0].percentEncoded)", of: "devices") { listing.add($0) }
        return listing.end()
      default: _ = try await desk.post("/jobs/\(line.operands[0].percentEncoded)", ["action": .string(line.verb)])
      }
      return 0
    }
  }
}

private enum Jobs {
  static let usage = """
    usage: prism-collector job list | show ID | pause ID | resume ID | cancel ID [--json] [--config PATH | the flags of
           prism-collector]

      list    the newest 500: id, when, namespace, state, devices that wait, got it, carried it out, and failed, expression
      show    the devices of a job: device, progress, when, result; with --json a line of JSON each
      pause   no further device gets it; resume goes on, also after too many failed
      cancel  ends it; devices that have it carry it out

    `command send --where EXPR` makes a job.

    Exit codes: 0, 1 there is no such job, or it ended, 64 usage, 69 the store can't be reached, 78 configuration.
    """
}
