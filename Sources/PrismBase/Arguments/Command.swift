#if canImport(Glibc)
  import Glibc
#endif

/// One command of a program: its words, what it takes, and what it does. Parsing, help, completion and manual are made
/// from it.
public struct Command: Sendable {
  public typealias Option = ArgumentOption

  /// The work of a command on its line.
  public enum Work: Sendable {
    /// Done before there is a thread: libdispatch ends a program that has no /proc.
    case early(@Sendable (Invocation) throws(Failure) -> Void)
    /// - Returns: the exit code.
    case later(@Sendable (Invocation) async throws(Failure) -> Int32)
  }

  /// `dead list` has two. The work of a program without a command has an empty list.
  public let words: [String]
  /// In one line.
  public let summary: String
  /// More, for the help of the command itself.
  public let details: String
  /// Names of the operands. One in brackets may be left out, one that ends with `...]` may be repeated.
  public let operands: [String]
  /// The options of this command.
  public let options: [Option]
  /// Those that it has in common with others.
  public let shared: [Option]
  /// A line that does something useful; nil: there is no such line.
  public let example: String?
  /// Its work.
  public let work: Work

  /// - Parameter words: with spaces between them.
  /// - Parameter summary: its first line; the others are the details.
  public init(
    _ words: String, _ summary: String, operands: [String] = [], options: [Option] = [], shared: [Option] = [],
    example: String? = nil, work: Work
  ) {
    let lines = summary.split(separator: "\n", maxSplits: 1).map(String.init)
    (self.words, self.summary) = (words.split(separator: " ").map(String.init), lines.first ?? "")
    (details, self.operands, self.options) = (lines.count > 1 ? lines[1] : "", operands, options)
    (self.shared, self.example, self.work) = (shared, example, work)
  }

  /// Several commands of one work and with the same options: `device list`, `device show`, …
  /// - Parameter verbs: the last word of each, its operands with spaces between them, and its summary.
  public static func group(
    _ stem: String, _ verbs: [(verb: String, operands: String, summary: String)], options: [Option] = [],
    _ work: @escaping @Sendable (Invocation) async throws(Failure) -> Int32
  ) -> [Command] {
    verbs.map { verb in
      Command(
        "\(stem) \(verb.verb)", verb.summary, operands: verb.operands.split(separator: " ").map(String.init),
        options: options, work: .later(work))
    }
  }

  /// `dead list`
  public var name: String { words.joined(separator: " ") }
  /// Its own, those that it has in common with others, and `--help`.
  public var allOptions: [Option] { options + shared + [Program.help] }
  /// The name with the operands.
  var line: String { ([name] + operands).joined(separator: " ") }
}

/// The line of a command, taken apart and checked.
public struct Invocation: Sendable {
  /// The command.
  public let command: Command
  /// Options that were given before the command's words.
  let leading: Arguments
  /// The words after those of the command.
  let arguments: Arguments

  /// The words that are not options.
  public var operands: [String] { arguments.operands }
  /// The last word of the command: `list` of `device list`.
  public var verb: String { command.words.last ?? "" }
  /// The options, in order and as often as they were given.
  public var given: [Arguments.Given] { leading.given + arguments.given }

  /// Whether the option was given. `--output json` is `--json`.
  public func has(_ option: String) -> Bool {
    given.contains { $0.name == option } || option == "--json" && self["--output"] == "json"
  }

  /// The value that was given for the option; of several the last.
  public subscript(option: String) -> String? { arguments[option] ?? leading[option] }

  /// Every value of an option that may be given several times.
  public func values(_ option: String) -> [String] { given.filter { $0.name == option }.compactMap(\.value) }

  /// Asks on the terminal before something is destroyed, unless `--yes` is given.
  /// - Parameter refusal: what is said if the answer is not y.
  public func confirm(_ question: String, else refusal: String) throws(Failure) {
    if has(Command.Option.yes.name) { return }
    guard isatty(STDIN_FILENO) == 1 else {
      throw .usage("\(command.name): without a terminal, --yes is required")
    }
    StandardStreams.say("\(question) [y/N] ")
    guard readLine() == "y" else { throw Failure(Failure.no, refusal) }
  }

  /// Does what the command does. - Returns: the exit code.
  public func run() async throws(Failure) -> Int32 {
    switch command.work {
    case .early(let work): try work(self)
    case .later(let work): return try await work(self)
    }
    return 0
  }
}

extension Command.Option {
  /// Of each command that destroys something.
  public static let yes = Command.Option("--yes", nil, "don't ask; needed without a terminal")
}
