import PrismBase
import PrismCollector
import PrismProtocol

extension Command {
  /// `prism-collector erase`: erases reports for good, and prints the receipt.
  static let erase = Command(
    "erase",
    """
    erase the reports of a device, or those with a value of a field, for good, and ask first
    It rewrites the blocks that have them, and the database's files, in which no byte of them stays. Packets wait while
    the files are written. The receipt that it prints is a line of erasures.ndjson in the state folder, too.
    """, options: Erasure.options, example: "prism-collector erase --device 8f14e45f --yes", work: .later(Erasure.run))
}

private enum Erasure {
  static func run(_ line: Invocation) async throws(Failure) -> Int32 {
    let wanted = [("device", line["--device"]), ("where", line["--where"])].compactMap { name, value in
      value.map { JSONValue.Member(name, .string($0)) }
    }
    guard wanted.count == 1 else { throw line.misused("erase needs one of --device, --where") }
    try confirm(wanted[0], line)
    return try await line.ask { client throws(Failure) in
      let begun = try await client.post("/erasures", .object(wanted))
      while true {
        let jobs = try await client.get("/erasures")["erasures"]?.array ?? []
        guard let job = jobs.last(where: { $0["id"] == begun["id"] }) else {
          throw .unavailable("the collector was started again: begin once more")
        }
        switch job["state"]?.string {
        case "running": try? await SystemTime().sleep(for: pause)
        case "done":
          print(OutputText.json(job.text))
          return 0
        default: throw .unavailable(job["cause"]?.string ?? "it failed")
        }
      }
    }
  }

  /// Between two looks at the job.
  static let pause: Duration = .milliseconds(100)

  static let options = [
    ArgumentOption("--device", "ID", "all reports of a device, and its records"),
    ArgumentOption("--where", "FIELD=VALUE", "all reports with this value of a field of the meta"),
    .yes,
  ]

  static func confirm(_ wanted: JSONValue.Member, _ line: Invocation) throws(Failure) {
    let value = (wanted.value.string ?? "").printable
    try line.confirm("erase all reports with \(wanted.key) \(value) for good?", else: "nothing was erased")
  }
}
