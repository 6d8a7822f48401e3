/// The words of a command line, taken apart by a table of options. Options and operands may be mixed.
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
        operands.append(word)
        continue
      }
      let option = try Self.option(word, options, &rest)
      given.append(option)
      if option.name == last { return }
    }
  }

  /// Whether the option was given, with or without a value.
  public func contains(_ name: String) -> Bool { given.contains { $0.name == name } }

  /// The last value that was given for the option; nil if no value was given.
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
