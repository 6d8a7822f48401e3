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

  public init(
    _ name: String, _ value: String? = nil, _ help: String, presence: Presence = .required, shortName: String? = nil
  ) {
    (self.name, self.value, self.help) = (name, value, help)
    (self.presence, self.shortName) = (presence, shortName)
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
