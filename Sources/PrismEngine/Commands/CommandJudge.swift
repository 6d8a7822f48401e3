import PrismConfig
import PrismPacket
import PrismProtocol
import PrismStore

/// Judges the records of commands, without side effects. The same judgement holds when a command comes, and again before it
/// begins.
struct CommandJudge: Sendable {
  /// A command that may begin when it is its turn.
  struct Order: Sendable, Equatable {
    var request: CommandRequest
    var action: CommandAction
  }

  enum Verdict: Equatable, Sendable {
    /// The record says the end of the command, and that holds.
    case nothing
    case expired
    case refused(CommandRefusal)
    case waits(Order)
    /// The server's clock says that it is expired, or expires too late: that may be a step, and is final once it is proven.
    case unproven
  }

  let namespace: NamespaceName
  let deviceID: String
  let rules: DaemonConfiguration.Commands
  /// By the server's clock: milliseconds since 1970. And the times that it may be, for what is final.
  let now: Int64, proven: ClosedRange<Int64>

  /// - Parameter mark: what is remembered of the command's id.
  /// - Parameter forgottenThrough: a command that expires up to it may have begun, and be forgotten.
  func verdict(on record: StoredRecord, mark: CommandMark?, forgottenThrough: Int64) -> Verdict {
    let fields = (try? JSONValue(parsing: record.fields)) ?? .null
    let state = CommandAnswer(fields: fields)?.state
    do throws(CommandRefusal) {
      let request = try request(fields, record)
      if let mark, !mark.isOf(request), state != .refused, now < mark.expires { throw .changed }
      if state?.isFinal == true { return .nothing }
      try checkSignature(request)
      if proven.lowerBound >= request.expires || mark == nil && request.expires <= forgottenThrough { return .expired }
      if now >= request.expires || request.expiresTooLate(now: now) { return .unproven }
      if mark?.hasBegun == true { throw .replayed }
      return .waits(Order(request: request, action: try CommandAction(request, rules)))
    } catch {
      if state?.isFinal == true, error != .changed { return .nothing }
      return .refused(error)
    }
  }

  private func request(_ fields: JSONValue, _ record: StoredRecord) throws(CommandRefusal) -> CommandRequest {
    do throws(CommandFault) {
      let request = try CommandRequest(
        fields: fields, namespace: namespace, deviceID: deviceID, id: record.commandID)
      try request.check(now: proven.upperBound)
      return request
    } catch { throw .unreadable(error) }
  }

  private func checkSignature(_ request: CommandRequest) throws(CommandRefusal) {
    guard let publicKey = rules.publicKey else { return }
    guard request.signature != nil else { throw .unsigned }
    guard request.isSigned(by: publicKey) else { throw .wrongSignature }
  }
}

extension StoredRecord {
  /// The server chose it.
  var commandID: RecordID { serverID ?? id }
}
