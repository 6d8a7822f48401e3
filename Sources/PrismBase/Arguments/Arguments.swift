/// The words of a command line, taken apart by a table of options. Options and operands may be mixed. An empty one is
/// refused: a variable that is not set would mean all that there is.
public struct Arguments: Sendable {
  /// An option as it was given.
  public struct Given: Sendable, Equatable {
    /// The name in the table, also for the short name.
    public let name: String
    /// nil for a switch.
    public let value: String?
  }

  /// The words that are not options, in order. A word with one dash is one, and so is every word after `--`.
  public private(set) var operands: [String] = []
  /// The options, in order and as often as they were given.
  public private(set) var given: [Given] = []

  /// - Parameter last: the name of an option that ends the reading, such as `--help`: the words after it are ignored.
  public init(_ words: [String], options: [ArgumentOption], last: String? = nil) throws(ArgumentFault) {
    var rest = words[...]
    while let word = rest.popFirst() {
      if word == "--" {
        operands += rest
        return
      }
      let isShort = options.contains { $0.shortName == word }
      guard isShort || word.hasPrefix("--") else {
        guard !word.isEmpty else { throw .empty(nil) }
        operands.append(word)
        continue
      }
      let option = try Self.option(word, options, &rest)
      guard option.value?.isEmpty != true else { throw .empty(option.name) }
      let known = options.first { $0.name == option.name && !$0.isRepeatable }
      if let known, option.value != nil, contains(option.name) { throw .repeated(known) }
      given.append(option)
      if option.name == last { return }
    }
  }

  /// Whether the option was given, with or without a value.
  public func contains(_ name: String) -> Bool { given.contains { $0.name == name } }

  /// The value that was given for the option, of several the last; nil if no value was given.
  public subscript(name: String) -> String? { given.last { $0.name == name && $0.value != nil }?.value }

  private static func option(
    _ word: String, _ options: [ArgumentOption], _ rest: inout ArraySlice<String>
  ) throws(ArgumentFault) -> Given {
    let parts = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
    guard let option = options.first(where: { $0.name == parts[0] || $0.shortName == parts[0] }) else {
      throw .unknownOption(parts[0], nearest: NearestName.of(parts[0], among: options.map(\.name)))
    }
    if parts.count == 2 {
      guard option.value != nil else { throw .valueUnexpected(option) }
      return Given(name: option.name, value: parts[1])
    }
    return Given(name: option.name, value: try value(of: option, &rest))
  }

  private static func value(
    of option: ArgumentOption, _ rest: inout ArraySlice<String>
  ) throws(ArgumentFault) -> String? {
    guard option.value != nil else { return nil }
    switch option.presence {
    case .attached: return nil
    case .optional: return rest.first?.hasPrefix("-") == false ? rest.popFirst() : nil
    case .required:
      guard let value = rest.popFirst() else { throw .valueMissing(option) }
      return value
    }
  }
}

/// One option of a program's command line: a row of the table that the program reads its words by and prints its help
/// from.
public struct ArgumentOption: Sendable, Equatable {
  /// How an option with a value gets it.
  public enum Presence: Sendable, Equatable {
    /// `--name VALUE` or `--name=VALUE`.
    case required
    /// `--name=VALUE`; without `=` the option is a switch.
    case attached
    /// `--name=VALUE`, or `--name VALUE` if the next word does not begin with `-`; else the option is a switch.
    case optional
  }

  /// With its dashes: `--config`.
  public let name: String
  /// The value's name in the help, such as `PATH`; nil for a switch.
  public let value: String?
  /// The option's effect, in one sentence. A line feed begins a new line of the help.
  public let help: String
  /// Only of an option with a value. Default: `required`.
  public let presence: Presence
  /// A second name, such as `-h`; nil if the option has only one.
  public let shortName: String?
  /// Whether it may be given several times, each with another value. Default: no.
  public let isRepeatable: Bool

  public init(
    _ name: String, _ value: String? = nil, _ help: String, presence: Presence = .required, shortName: String? = nil,
    isRepeatable: Bool = false
  ) {
    (self.name, self.value, self.help) = (name, value, help)
    (self.presence, self.shortName, self.isRepeatable) = (presence, shortName, isRepeatable)
  }

  /// How it is written: `--type T`, `--watch[=SECONDS]`, `-h, --help`.
  public var usage: String {
    let names = (shortName.map { $0 + ", " } ?? "") + name
    guard let value else { return names }
    return switch presence {
    case .required: "\(names) \(value)"
    case .attached: "\(names)[=\(value)]"
    case .optional: "\(names) [\(value)]"
    }
  }

  /// The options' part of a help text: the usage of each, then its help from a common column on.
  /// - Parameter column: where the help begins, in characters; a longer usage has a line of its own.
  public static func help(_ options: [ArgumentOption], column: Int) -> String {
    let indent = String(repeating: " ", count: column)
    let lines = options.map { option in
      let head = "  \(option.usage)"
      let gap = head.count < column ? String(indent.dropFirst(head.count)) : "\n" + indent
      return head + gap + option.help.split(separator: "\n").joined(separator: "\n" + indent)
    }
    return lines.joined(separator: "\n")
  }
}

/// Why the words of a command line are not understood. A program ends with exit code 64 for it.
public enum ArgumentFault: Error, Sendable, Equatable, CustomStringConvertible {
  /// There is no such option; `nearest` is the one that was probably meant.
  case unknownOption(String, nearest: String?)
  /// The option is the last word and needs a value.
  case valueMissing(ArgumentOption)
  /// A switch was given a value with `=`.
  case valueUnexpected(ArgumentOption)
  /// It was given twice: only one value can hold.
  case repeated(ArgumentOption)
  /// The program takes no such word.
  case unexpectedWord(String)
  /// The value of this option is empty; nil: a word is.
  case empty(String?)

  public var description: String {
    switch self {
    case .unknownOption(let name, let nearest):
      "there is no option `\(name)`" + (nearest.map { "; did you mean `\($0)`?" } ?? "")
    case .valueMissing(let option): "`\(option.name)` needs a value: \(option.help)"
    case .valueUnexpected(let option): "`\(option.name)` takes no value"
    case .repeated(let option): "`\(option.name)` is given twice; give it once"
    case .unexpectedWord(let word): "`\(word)` is not understood"
    case .empty(let option): "\(option.map { "the value of `\($0)`" } ?? "a word") is empty; is a variable not set?"
    }
  }
}
