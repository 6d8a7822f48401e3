import PrismBase
import PrismCollector
import PrismProtocol

/// `prism-collector crash …`: groups of crashes, whether the collector runs or not.
struct CrashCommand {
  static let options = [
    ArgumentOption("--json", nil, "the answers of the API: with list, each group as one line of JSON")
  ]

  static let usage = """
    usage: prism-collector crash list | show FINGERPRINT [--json] [--config PATH | the flags of prism-collector]

      list  the groups with a crash in the last 14 days, those with the newest first: fingerprint, state, crashes, devices,
            when the last one came, reason, innermost frame of the app
      show  one group: its frames with names, files and lines, those of the app first, and its versions

    \(ArgumentOption.help(options, column: 21))

    Exit codes: 0, 1 there is no such group, 64 usage, 69 the store can't be reached, 78 configuration.
    """

  private let desk: CollectorDesk
  private let isJSON: Bool

  /// - Parameter arguments: with the operand `crash`. - Returns: the exit code.
  static func run(_ arguments: Arguments) async throws(Flags.Fault) -> Int32 {
    let words = Array(arguments.operands.dropFirst())
    guard let verb = words.first, !arguments.contains("--help") else {
      print(usage)
      return arguments.contains("--help") ? 0 : 64
    }
    guard verb == "list" && words.count == 1 || verb == "show" && words.count == 2 else {
      throw Flags.Fault(exitCode: 64, message: "crash: it needs `list`, or `show` with a fingerprint\n\(usage)")
    }
    try await CollectorDesk.open(Flags(arguments).options) { desk throws(CollectorDesk.Fault) in
      let command = CrashCommand(desk: desk, isJSON: arguments.contains("--json"))
      let list = try await command.list()
      if verb == "show" { try await command.show(words[1]) } else { command.printed(list) }
    }
    return 0
  }

  /// The groups once all crashes are read, which may take several questions.
  private func list() async throws(CollectorDesk.Fault) -> JSONValue {
    var list: JSONValue
    repeat { list = try await desk.get("/crashes", query: "limit=1000") } while list["isWhole"]?.bool == false
    return list
  }

  private func printed(_ list: JSONValue) {
    for group in list["groups"]?.array ?? [] {
      let time = group["lastTime"]?.int.map { RFC3339.text(unixMilliseconds: Int64($0)) }
      let texts = [
        group["fingerprint"]?.string, group["state"]?.string, group["count"]?.int.map(String.init),
        group["devices"]?.int.map(String.init), time, group["reason"]?.string, group["frame"]?.string,
      ]
      CollectorDesk.printRow(group, texts, isJSON)
    }
  }

  private func show(_ fingerprint: String) async throws(CollectorDesk.Fault) {
    guard !fingerprint.isEmpty, fingerprint.utf8.allSatisfy({ "0123456789abcdef".utf8.contains($0) }) else {
      throw CollectorDesk.Fault(
        message: "a fingerprint has 16 hexadecimal digits, as `crash list` prints it", exitCode: 1)
    }
    let crash = try await desk.get("/crashes/\(fingerprint)")
    if isJSON { return print(OutputText.json(crash.text)) }
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
