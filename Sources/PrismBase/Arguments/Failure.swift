/// Why a program, or a command of it, ends without having done what it was asked, and the exit code.
public struct Failure: Error, Sendable, Equatable {
  /// After sysexits.h.
  public let exitCode: Int32
  /// In words, with what is allowed. Empty: everything has been said.
  public let message: String

  /// The answer is no, or the command line is faulty.
  public static let no: Int32 = 1, usage: Int32 = 64
  /// A file holds what can't be used, or can't be read.
  public static let data: Int32 = 65, noInput: Int32 = 66
  /// The other side does not answer, or its answer can't be understood.
  public static let unavailable: Int32 = 69, software: Int32 = 70
  /// A file can't be made, or the output can't be written.
  public static let cannotCreate: Int32 = 73, output: Int32 = 74
  /// This user may not ask for it, or a configuration or a key is faulty.
  public static let notPermitted: Int32 = 77, configuration: Int32 = 78

  public init(_ exitCode: Int32, _ message: String) { (self.exitCode, self.message) = (exitCode, message) }

  /// A fault of the command line.
  public static func usage(_ message: String) -> Failure { Failure(usage, message) }
  /// The other side does not answer.
  public static func unavailable(_ message: String) -> Failure { Failure(unavailable, message) }
}
