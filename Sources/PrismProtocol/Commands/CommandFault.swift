/// Why the fields of a record are no command. The texts say the member, its value's form and the values that are allowed;
/// they never hold the value of an argument.
public enum CommandFault: Error, Equatable, Sendable {
  case fieldsNotObject
  /// The fields have more than `CommandRequest.fieldsBytesMax` bytes.
  case tooLarge(bytes: Int)
  case unknownMember(String)
  /// `name` is missing, or no command has it.
  case name(String?)
  case expires
  /// It expires more than 30 days from now.
  case expiresTooLate
  case argsNotObject
  case tooManyArguments(Int)
  /// The name of an argument is not one, or occurs twice.
  case argumentName
  /// The argument of this name has a value of another form.
  case argumentValue(String)
  /// It is there, and no base64 of 64 bytes.
  case signature
  /// The arguments of `ask` are no question, because of this.
  case question(String)

  /// For the record's `result`, `prismctl` and the collector's answers.
  public var message: String {
    switch self {
    case .fieldsNotObject: "the fields are not an object"
    case .tooLarge(let bytes): "the command has \(bytes) bytes, must have at most \(CommandRequest.fieldsBytesMax)"
    case .unknownMember(let key):
      "a command has no member \(key.cut(atBytes: 64).printable); must be name, args, expires or signature"
    case .name(nil): "the name is missing; must be \(Self.names)"
    case .name(let name?): "the name is \(name.cut(atBytes: 64).printable), must be \(Self.names)"
    case .expires: "expires must be a time after 1970 in milliseconds"
    case .expiresTooLate: "expires must be at most \(CommandRequest.lifetimeDaysMax) days from now"
    case .argsNotObject: "args must be an object"
    case .tooManyArguments(let count): "there are \(count) args, must be at most \(CommandRequest.argumentsMax)"
    case .argumentName: "a name in args occurs twice, or is not 1 to 64 of A-Z a-z 0-9 _ -"
    case .argumentValue(let name):
      "\(name) in args must be a string of at most \(CommandValue.textBytesMax) bytes, a whole number or a boolean"
    case .question(let fault): fault
    case .signature: "the signature must be base64 of 64 bytes"
    }
  }

  private static var names: String {
    let names = CommandName.allCases.map(\.rawValue)
    return names.dropLast().joined(separator: ", ") + " or " + names[names.count - 1]
  }
}
