public import PrismProtocol

/// Answers that every command has in common.
public enum ControlAnswer {
  /// The last line of a request that failed: `{"error":{"message":…,"exitCode":…},"done":true}`.
  public static func error(_ message: String, _ exitCode: ExitCode) -> JSONValue {
    ["error": ["message": .string(message), "exitCode": .int(exitCode.rawValue)], "done": true]
  }
}
