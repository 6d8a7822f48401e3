import PrismControl
import PrismProtocol

/// The exit codes of the programs, after sysexits.h (prismd(8), "EXIT STATUS").
public enum ExitCode: Int32, Sendable, CaseIterable {
  case ok = 0
  /// "The answer is no": a refusal, a fault found by a check that is not one of those below.
  case no = 1
  case usage = 64
  /// A resource is not there: a socket in use, the state locked by another prismd.
  case unavailable = 69
  /// A fault of our own.
  case software = 70
  case cannotCreate = 73
  /// The peer of a control socket is not one that is answered.
  case notPermitted = 77
  case configuration = 78

  /// The answer of the control socket for it.
  func failure(_ message: String) -> Answers.Failure { Answers.Failure(Int(rawValue), message) }
}
