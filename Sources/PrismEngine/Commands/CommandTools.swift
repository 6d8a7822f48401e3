public import PrismProtocol

/// The parts of commands that work with the machine. The edge (`PrismLinux`) implements them; tests script them.
public protocol CommandTools: Sendable {
  /// Stores the findings of `prismctl doctor --json` as a report `doctor`.
  func doctor(for command: CommandOrigin) async -> CommandEnd
  /// Stores a file as the payload of a report `file`. - Parameter path: absolute, without `.`, `..` and empty parts.
  func collect(_ path: String, for command: CommandOrigin) async -> CommandEnd
  /// Starts the unit `prism-command@NAME.service` and waits for its end.
  func run(_ unit: String, for command: CommandOrigin) async -> CommandEnd
}

/// The place that a command came from, and that its reports go to.
public struct CommandOrigin: Sendable, Equatable {
  public var namespace: NamespaceName
  /// The id of the command.
  public var id: RecordID
}

/// The end of a command that began.
public struct CommandEnd: Sendable, Equatable {
  /// false: it failed.
  public var isDone: Bool
  /// A string, or a flat object.
  public var result: JSONValue?

  /// - Parameter result: nil: there is nothing to tell.
  public static func done(_ result: JSONValue? = nil) -> CommandEnd { CommandEnd(isDone: true, result: result) }
  public static func failed(_ result: JSONValue) -> CommandEnd { CommandEnd(isDone: false, result: result) }
}
