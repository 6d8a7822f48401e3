import PrismBase
import PrismCollector
import PrismProtocol

extension Command {
  /// `prism-collector crash …`: groups of crashes.
  static let crash = group(
    "crash",
    [
      (
        "list", "",
        """
        the groups with a crash in the last 14 days, those with the newest first
        Fingerprint, state, crashes, devices, when the last one came, reason, innermost frame of the app.
        """
      ),
      (
        "show", "FINGERPRINT",
        "one group: its frames with names, files and lines, those of the app first, and its versions"
      ),
    ], options: [json]
  ) { line throws(Failure) in
    try await line.ask { client throws(Failure) in
      let groups = CrashGroups(client: client, line: line)
      // All crashes are read, which may take several questions.
      let list = try await client.whole("/crashes", query: "limit=1000")
      if line.verb == "show" {
        try await groups.show(line.operands[0])
        return 0
      }
      return Listing(line, "fingerprint state count devices lastTime reason frame").all(list["groups"], list["total"])
    }
  }
}

private struct CrashGroups {
  let client: CollectorClient
  let line: Invocation

  func show(_ fingerprint: String) async throws(Failure) {
    guard !fingerprint.isEmpty, fingerprint.utf8.allSatisfy({ "0123456789abcdef".utf8.contains($0) }) else {
      throw Failure(Failure.no, "a fingerprint has 16 hexadecimal digits, as `crash list` prints it")
    }
    let crash = try await client.get("/crashes/\(fingerprint)")
    if line.isJSON { return print(OutputText.json(crash.text)) }
    print((crash["group"]?["reason"]?.string ?? "").printable)
    let stack = (crash["stack"]?.array ?? []).enumerated().map { ($0, $1, $1["isApp"]?.bool == true) }
    for (title, isApp) in [("frames of the app:", true), ("other frames:", false)]
    where stack.contains(where: { $2 == isApp }) {
      print(title)
      for (place, frame, own) in stack where own == isApp { print("  #\(place) \(Self.line(frame))") }
    }
    print("versions:")
    for version in crash["versions"]?.array ?? [] {
      print("  \((version["version"]?.string ?? "").printable): \(version["count"]?.int ?? 0)")
    }
  }

  private static func line(_ frame: JSONValue) -> String {
    let inline = frame["isInline"]?.bool == true ? " [inlined]" : ""
    let path = frame["file"]?.string.map { file in " \(file)" + (frame["line"]?.int.map { ":\($0)" } ?? "") } ?? ""
    let module = frame["module"]?.string.map { " in \($0)" } ?? ""
    let name = frame["line"]?.int == nil ? frame["text"]?.string : frame["function"]?.string
    return "\(name ?? "??")\(path)\(module)\(inline)".printable
  }
}
