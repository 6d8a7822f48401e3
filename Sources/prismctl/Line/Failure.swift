/// Why a command ends without having done what it was asked: what happened and what to do next, for standard error.
struct Failure: Error {
  let exitCode: Int32
  /// Empty: everything has been said.
  let message: String

  static let no: Int32 = 1, usage: Int32 = 64, noInput: Int32 = 66, unavailable: Int32 = 69, software: Int32 = 70
  static let cannotCreate: Int32 = 73, output: Int32 = 74, notPermitted: Int32 = 77, configuration: Int32 = 78

  init(_ exitCode: Int32, _ message: String) { (self.exitCode, self.message) = (exitCode, message) }

  static func usage(_ message: String) -> Failure { Failure(Failure.usage, message) }
}
