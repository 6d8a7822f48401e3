import Glibc
import PrismBase
import PrismCollector
import PrismProtocol

/// Why a command ends without having done what it was asked, and the exit code.
typealias Fault = CollectorDesk.Fault

extension Fault {
  static func usage(_ message: String) -> Fault { Fault(message: message, exitCode: 64) }
  static func unavailable(_ message: String) -> Fault { Fault(message: message, exitCode: 69) }

  /// The exit code, once the message is said; an empty one was said before.
  var said: Int32 {
    if !message.isEmpty { complain(message) }
    return exitCode
  }
}

/// Says it on standard error; names of files and words of others may hold escape sequences.
func complain(_ text: String) { StandardStreams.say("prism-collector: \(text.printableLines)\n") }

/// A command of the program: it works whether the collector runs or not.
struct CollectorCommand: Sendable {
  let name: String
  /// The words that may follow, each with the number of its operands; empty: operands follow at once.
  private var verbs: [String: ClosedRange<Int>] = [:]
  /// Beside the flags of the collector.
  var options: [ArgumentOption] = []
  /// Of `--help`.
  var usage = Flags.usage
  let work: Work

  enum Work: Sendable {
    /// Done before there is a thread: libdispatch ends a program that has no /proc.
    case early(@Sendable (CollectorLine) throws(Fault) -> Void)
    /// - Returns: the exit code.
    case asking(@Sendable (CollectorLine) async throws(Fault) -> Int32)
  }

  init(
    name: String, verbs: [String: ClosedRange<Int>] = [:], options: [ArgumentOption] = [], usage: String = Flags.usage,
    _ work: @escaping @Sendable (CollectorLine) async throws(Fault) -> Int32
  ) {
    (self.name, self.verbs, self.options, self.usage, self.work) = (name, verbs, options, usage, .asking(work))
  }

  init(early name: String, options: [ArgumentOption], _ work: @escaping @Sendable (CollectorLine) throws(Fault) -> Void)
  {
    (self.name, self.options, self.work) = (name, options, .early(work))
  }

  /// Every command, in the order in which a word that is unknown is compared with them.
  static let all: [CollectorCommand] = [
    .check, .migrate, .backup, .restore, .erase, .importing, .deviceKey, .device, .query, .record, .command, .job,
    .ask, .crash, .notice, .output, .symbols, .release,
  ]

  /// It shows what is stored already.
  fileprivate var readsStore: Bool { ["query", "crash", "release"].contains(name) }

  static let answersAsJSON = [
    ArgumentOption("--json", nil, "the answers of the API: with list, each group as one line of JSON")
  ]

  /// A word that names no command, with what was probably meant.
  static func unknown(_ word: String) -> Fault {
    let hint = NearestName.of(word, among: all.map(\.name)).map { "; did you mean `prism-collector \($0)`?" } ?? ""
    return .usage("there is no command `\(word)`\(hint) (`prism-collector --help` lists them)")
  }

  /// Takes the words apart. - Returns: nil: the help was asked for, and printed.
  func line(_ arguments: Arguments) throws(Fault) -> CollectorLine? {
    var operands = Array(arguments.operands.dropFirst())
    guard !arguments.contains("--help"), verbs.isEmpty || !operands.isEmpty else {
      print(usage)
      if arguments.contains("--help") { return nil }
      throw .usage("")
    }
    let verb = verbs.isEmpty ? "" : operands.removeFirst()
    if !verbs.isEmpty {
      guard let count = verbs[verb] else { throw .usage("`\(name) \(verb)` is no command\n\(usage)") }
      guard count.contains(operands.count) else {
        throw .usage("\(name) \(verb): wrong number of operands\n\(usage)")
      }
    }
    return CollectorLine(command: self, verb: verb, operands: operands, arguments: arguments)
  }
}

/// The words of a command, taken apart.
struct CollectorLine: Sendable {
  let command: CollectorCommand
  /// Empty for a command without verbs.
  let verb: String
  let operands: [String]
  let arguments: Arguments

  var isJSON: Bool { arguments.contains("--json") }
  subscript(option: String) -> String? { arguments[option] }
  /// Every value of an option that may be given several times.
  func values(_ option: String) -> [String] { arguments.given.filter { $0.name == option }.compactMap(\.value) }

  /// The configuration, checked.
  var options: CollectorOptions {
    get throws(Fault) { try Flags(arguments, makesState: !command.readsStore).options }
  }

  /// Asks before something is destroyed, unless `--yes` is given. - Parameter refusal: what is said if the answer is not y.
  func confirm(_ question: String, else refusal: String) throws(Fault) {
    do throws(Unconfirmed) {
      try arguments.confirm(question, of: verb.isEmpty ? command.name : "\(command.name) \(verb)", else: refusal)
    } catch { throw error.isUsage ? .usage(error.message) : Fault(message: error.message, exitCode: 1) }
  }

  /// A fault of these words, above the help.
  func misused(_ message: String) -> Fault { .usage("\(message)\n\(command.usage)") }

  /// Asks the API, and closes the store if it was opened for this.
  func ask<Answer>(_ body: (CollectorDesk) async throws(Fault) -> Answer) async throws(Fault) -> Answer {
    let desk = try CollectorDesk(try options)
    let result: Result<Answer, Fault>
    do throws(Fault) { result = .success(try await body(desk)) } catch { result = .failure(error) }
    await desk.end()
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
