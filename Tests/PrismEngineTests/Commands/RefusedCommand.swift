import PrismConfig
import PrismPacket
import PrismProtocol
import Testing

@testable import PrismEngine

/// A command with a fault, and the device's words.
struct RefusedCommand: Sendable, CustomTestStringConvertible {
  var label: String
  var words: String
  var rules = CommandRig.rules()
  /// Changes the command before it is signed.
  var change: @Sendable (inout CommandRequest) -> Void = { _ in }
  /// Changes its fields after that.
  var fields: @Sendable (CommandRequest) -> JSONValue = { $0.fields }
  var testDescription: String { "\(label): \(words)" }

  static let signing = CommandRig.rules { $0.publicKey = CommandRig.key.publicKey }

  static func signed(_ change: @escaping @Sendable (inout CommandRequest) -> Void)
    -> @Sendable (CommandRequest)
    -> JSONValue
  {
    { request in
      var other = request
      change(&other)
      var result = request
      result.signature = try? other.signed(by: CommandRig.key).signature
      return result.fields
    }
  }

  static let all = [
    RefusedCommand(
      label: "not_allowed", words: "run is not in commands.allow", rules: CommandRig.rules { $0.allow = [.log] }),
    RefusedCommand(
      label: "unreadable", words: "the name is reboot", fields: { _ in ["name": "reboot", "expires": 5] }),
    RefusedCommand(label: "unreadable", words: "expires must be", fields: { _ in ["name": "flush"] }),
    RefusedCommand(
      label: "unreadable", words: "no member when", fields: { _ in ["name": "flush", "expires": 5, "when": 1] }),
    RefusedCommand(label: "unreadable", words: "at most 30 days", change: { $0.expires += 31 * 86_400_000 }),
    RefusedCommand(label: "arguments", words: "needs the argument name", change: { $0.args = [:] }),
    RefusedCommand(label: "arguments", words: "not force", change: { $0.args["force"] = .truth(true) }),
    RefusedCommand(label: "arguments", words: "commands.units", change: { $0.args = ["name": .text("other")] }),
    RefusedCommand(label: "arguments", words: "needs the argument name", change: { $0.args = ["name": .integer(1)] }),
    RefusedCommand(label: "unsigned", words: "takes signed commands only", rules: signing),
    RefusedCommand(
      label: "unsigned", words: "has no remote.publicKey",
      change: { ($0.name, $0.args) = (.acceptStore, ["store": .text(StoreMark(id: 2).description)]) }),
    RefusedCommand(
      label: "arguments", words: "the identity of a store", rules: signing,
      change: { ($0.name, $0.args) = (.acceptStore, ["store": .text("2")]) },
      fields: { (try? $0.signed(by: CommandRig.key).fields) ?? .null }),
    RefusedCommand(
      label: "unreadable", words: "base64", rules: signing,
      fields: { _ in
        ["name": "run", "args": ["name": "restart-till"], "expires": 1_700_003_600_000, "signature": "AAAA"]
      }),
    RefusedCommand(label: "signature", words: "not one of", rules: signing, fields: signed { $0.deviceID = "other" }),
    RefusedCommand(
      label: "signature", words: "not one of", rules: signing,
      fields: signed { $0.namespace = NamespaceName("other")! }),
    RefusedCommand(label: "signature", words: "not one of", rules: signing, fields: signed { $0.id = RecordID("c2")! }),
    RefusedCommand(label: "signature", words: "not one of", rules: signing, fields: signed { $0.name = .flush }),
    RefusedCommand(label: "signature", words: "not one of", rules: signing, fields: signed { $0.expires += 1 }),
    RefusedCommand(label: "signature", words: "not one of", rules: signing, fields: signed { $0.args = [:] }),
    RefusedCommand(
      label: "signature", words: "not one of",
      rules: CommandRig.rules { $0.publicKey = CommandRig.key.publicKey.reversed() }, fields: signed { _ in }),
  ]
}
