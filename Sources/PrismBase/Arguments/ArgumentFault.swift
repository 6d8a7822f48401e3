/// Why the words of a command line are not understood. A program ends with exit code 64 for it.
public enum ArgumentFault: Error, Sendable, Equatable, CustomStringConvertible {
  /// There is no such option; `nearest` is the one that was probably meant.
  case unknownOption(String, nearest: String?)
  /// The option is the last word and needs a value.
  case valueMissing(ArgumentOption)
  /// A switch was given a value with `=`.
  case valueUnexpected(ArgumentOption)
  /// The program takes no such word.
  case unexpectedWord(String)

  public var description: String {
    switch self {
    case .unknownOption(let name, let nearest):
      "there is no option `\(name)`" + (nearest.map { "; did you mean `\($0)`?" } ?? "")
    case .valueMissing(let option): "`\(option.name)` needs a value: \(option.help)"
    case .valueUnexpected(let option): "`\(option.name)` takes no value"
    case .unexpectedWord(let word): "`\(word)` is not understood"
    }
  }
}
