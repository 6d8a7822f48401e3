import Glibc
import PrismBase
import PrismCollector
import PrismProtocol

/// Says it on standard error; names of files and words of others may hold escape sequences.
func complain(_ text: String) { StandardStreams.say("prism-collector: \(text.printableLines)\n") }

extension Command {
  /// It shows what is stored already: a state folder that is missing was mistyped.
  fileprivate var showsStore: Bool { ["query", "crash", "release"].contains { name.hasPrefix($0) } }

  static let json = Option("--json", nil, "the answers of the API: of a list each thing as one line of JSON")
}

extension Invocation {
  var isJSON: Bool { has("--json") }

  /// The configuration, checked.
  var options: CollectorOptions {
    get throws(Failure) { try Flags(given, makesState: !command.showsStore).options }
  }

  /// A fault of these words.
  func misused(_ message: String) -> Failure {
    .usage("\(message) (see `prism-collector \(command.name) --help`)")
  }

  /// Asks the API, and closes the store if it was opened for this.
  func ask<Answer>(_ body: (CollectorClient) async throws(Failure) -> Answer) async throws(Failure) -> Answer {
    let client = try CollectorClient(try options)
    let result: Result<Answer, Failure>
    do throws(Failure) { result = .success(try await body(client)) } catch { result = .failure(error) }
    await client.end()
    return try result.get()
  }
}

/// Lines on standard output, for as long as they can be written.
struct LineOutput {
  /// 74 once a line could not be written.
  private(set) var exitCode: Int32 = 0

  /// - Returns: whether it is written.
  mutating func add(_ line: String) -> Bool { write(Array((line + "\n").utf8)) }

  mutating func write(_ bytes: [UInt8]) -> Bool {
    guard exitCode == 0 else { return false }
    if !StandardStreams.write(bytes[...], to: STDOUT_FILENO) { exitCode = outputFailed(errno) }
    return exitCode == 0
  }
}

extension JSONValue {
  /// A member for people. - Parameter path: with dots; its name says whether it is a time in milliseconds since 1970.
  func shown(_ path: some StringProtocol) -> String? {
    let value = path.split(separator: ".").reduce(self as JSONValue?) { $0?[String($1)] }
    guard let number = value?.int else { return value?.string }
    let isTime = path == "time" || path.hasSuffix("Time") || path.hasSuffix("expires")
    return isTime ? RFC3339.text(unixMilliseconds: Int64(number)) : String(number)
  }
}
