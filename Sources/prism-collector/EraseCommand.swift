import PrismBase
import PrismCollector
import PrismProtocol

extension CollectorCommand {
  /// `prism-collector erase`: erases reports for good, and prints the receipt.
  static let erase = CollectorCommand(name: "erase", options: Erasure.options, usage: Erasure.usage) {
    line throws(Fault) in
    let wanted = [("device", line["--device"]), ("where", line["--where"])].compactMap { name, value in
      value.map { JSONValue.Member(name, .string($0)) }
    }
    guard wanted.count == 1, line.operands.isEmpty else { throw line.misused("erase needs one of --device, --where") }
    try Erasure.confirm(wanted[0], line)
    return try await line.ask { desk throws(Fault) in
      let begun = try await desk.post("/erasures", .object(wanted))
      while true {
        let jobs = try await desk.get("/erasures")["erasures"]?.array ?? []
        guard let job = jobs.last(where: { $0["id"] == begun["id"] }) else {
          throw .unavailable("the collector was started again: begin once more")
        }
        switch job["state"]?.string {
        case "running": try? await SystemTime().sleep(for: Erasure.pause)
        case "done":
          print(OutputText.json(job.text))
          return 0
        default: throw .unavailable(job["cause"]?.string ?? "it failed")
        }
      }
    }
  }
}

private enum Erasure {
  /// Between two looks at the job.
  static let pause: Duration = .milliseconds(100)

  static let options = [
    ArgumentOption("--device", "ID", "all reports of a device, and its records"),
    ArgumentOption("--where", "FIELD=VALUE", "all reports with this value of a field of the meta"),
    .yes,
  ]

  static func confirm(_ wanted: JSONValue.Member, _ line: CollectorLine) throws(Fault) {
    let value = (wanted.value.string ?? "").printable
    try line.confirm("erase all reports with \(wanted.key) \(value) for good?", else: "nothing was erased")
  }

  static let usage = """
    usage: prism-collector erase --device ID | --where FIELD=VALUE [--yes] [--config PATH | the flags of prism-collector]

    \(ArgumentOption.help(options, column: 25))

    It rewrites the blocks that have them, and the database's files, in which no byte of them stays. Packets wait while
    the files are written. The receipt that it prints is a line of erasures.ndjson in the state folder, too.

    Exit codes: 0, 1 another erasure runs or the answer is not y, 64 usage, 69 the store can't be changed, 78 configuration.
    """
}
