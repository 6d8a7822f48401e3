/// The value of a command's argument: a string, a whole number or a boolean.
public enum CommandValue: Equatable, Sendable {
  /// Bytes of a string at most.
  public static let textBytesMax = 1024

  case text(String)
  case integer(Int64)
  case truth(Bool)

  /// nil unless it is a string of at most 1,024 bytes, a whole number of 64 bits or a boolean.
  public init?(_ value: JSONValue) {
    switch value {
    case .string(let text) where text.utf8.count <= Self.textBytesMax: self = .text(text)
    case .number(let text):
      guard let integer = Int64(text) else { return nil }
      self = .integer(integer)
    case .bool(let truth): self = .truth(truth)
    default: return nil
    }
  }

  /// As it is in the fields of a record.
  public var json: JSONValue {
    switch self {
    case .text(let text): .string(text)
    case .integer(let integer): .int(integer)
    case .truth(let truth): .bool(truth)
    }
  }

  /// The letter and the text that are signed.
  var signed: (kind: String, text: String) {
    switch self {
    case .text(let text): ("s", text)
    case .integer(let integer): ("i", String(integer))
    case .truth(let truth): ("b", truth ? "true" : "false")
    }
  }
}
