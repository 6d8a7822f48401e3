#if canImport(Glibc)
  import Glibc
#endif

/// Why a command that destroys something must not go on.
public struct Unconfirmed: Error, Equatable {
  public let message: String
  /// There was no terminal to ask on: a fault of the command line.
  public let isUsage: Bool
}

extension ArgumentOption {
  /// Of each command that destroys something.
  public static let yes = ArgumentOption("--yes", nil, "don't ask; needed without a terminal")
}

extension Arguments {
  /// Asks on the terminal before something is destroyed, unless `--yes` is given.
  /// - Parameter refusal: what is said if the answer is not y.
  public func confirm(_ question: String, of command: String, else refusal: String) throws(Unconfirmed) {
    if contains(ArgumentOption.yes.name) { return }
    guard isatty(STDIN_FILENO) == 1 else {
      throw Unconfirmed(message: "\(command): without a terminal, --yes is required", isUsage: true)
    }
    StandardStreams.say("\(question) [y/N] ")
    guard readLine() == "y" else { throw Unconfirmed(message: refusal, isUsage: false) }
  }
}
