import PrismProtocol

/// Why a command is not carried out.
enum CommandRefusal: Error, Equatable, Sendable {
  /// The record is no command.
  case unreadable(CommandFault)
  /// `commands.allow` does not have it.
  case notAllowed(CommandName)
  /// `ask.allow` does not have it.
  case notAsked(ReportType)
  /// More would leave for a question than may.
  case overBudget(QuestionAnswer, bytesMax: Int)
  /// An argument is missing, or not one of this command, or its value is not allowed.
  case arguments(String)
  /// `remote.publicKey` is configured, and the command has no signature.
  case unsigned
  /// The command needs a signature, and the device has no `remote.publicKey` to check one.
  case signatureNeeded
  /// The signature is of another key, device, namespace or command.
  case wrongSignature
  /// The server changed a command that was seen before.
  case changed
  /// A command of this id began before.
  case replayed
  /// Too many commands wait, or are remembered.
  case tooMany

  /// A metric's label, and a field of the log.
  var label: String {
    switch self {
    case .unreadable: "unreadable"
    case .notAllowed, .notAsked: "not_allowed"
    case .overBudget: "over_budget"
    case .arguments: "arguments"
    case .unsigned, .signatureNeeded: "unsigned"
    case .wrongSignature: "signature"
    case .changed: "changed"
    case .replayed: "replayed"
    case .tooMany: "too_many"
    }
  }

  var message: String {
    switch self {
    case .unreadable(let fault): fault.message
    case .notAllowed(let name): "\(name.rawValue) is not in commands.allow of the device's prismd.yaml"
    case .notAsked(let type): "\(type) is not in ask.allow of the device's prismd.yaml"
    case .overBudget(let answer, let bytesMax):
      "the answer would have \(answer.rows) reports of \(answer.bytes) bytes, and may have \(bytesMax); ask for less"
    case .arguments(let fault): fault
    case .unsigned: "the device takes signed commands only; sign it with the private key of remote.publicKey"
    case .signatureNeeded: "the device takes this command with a signature only, and has no remote.publicKey"
    case .wrongSignature:
      "the signature is not one of the device's remote.publicKey over this namespace, device, id, name, expires "
        + "and args"
    case .changed: "the command was changed after the device had seen it; send another one with a new id"
    case .replayed: "a command of this id began before; send another one with a new id"
    case .tooMany:
      "\(CommandHandler.waitingMax) commands wait or \(CommandHandler.marksMax) are not expired yet; send it again later, "
        + "with a new id"
    }
  }
}
