import PrismBase
import PrismControl
import PrismProtocol
import Synchronization

/// The log's one line about a control command that changes something or hands out reports: who asked for what, and what
/// came of it. Written at most once, and not at all for other commands.
final class ControlLog: Sendable {
  private static let textBytesMax = 200
  /// The members of a request and of its answer that are logged.
  private static let arguments = [
    "namespace", "id", "reportId", "all", "oldest", "latest", "beforeDays", "kind", "wait",
  ]
  private static let counts = [
    "removed", "requeued", "dropped", "exported", "generation", "changes", "carried", "settled",
  ]

  private let log: Logger
  private let request: ControlRequest
  private let caller: ControlCaller
  private let isWritten: Mutex<Bool>

  init(_ log: Logger, _ request: ControlRequest, _ caller: ControlCaller) {
    (self.log, self.request, self.caller) = (log, request, caller)
    isWritten = Mutex(!request.command.isLogged)
  }

  /// - Parameter answer: the members of the answer's last line.
  func write(_ answer: [JSONValue.Member] = []) {
    write(
      Self.counts.compactMap { key in
        guard let value = answer.first(where: { $0.key == key })?.value else { return nil }
        return (value.int ?? value.array?.count).map { (key, String($0)) }
      })
  }

  func write(failure: String) { write([("failure", failure.cut(atBytes: Self.textBytesMax))]) }

  private func write(_ result: [(String, String)]) {
    let isFirst = isWritten.withLock { isWritten in
      defer { isWritten = true }
      return !isWritten
    }
    guard isFirst else { return }
    let who = [
      ("uid", String(caller.userID)), ("pid", String(caller.processID)), ("command", request.command.rawValue),
    ]
    let what = Self.arguments.compactMap { key in
      request[key].map { (key, ($0.string ?? $0.text).cut(atBytes: Self.textBytesMax)) }
    }
    log.audit("control command", (who + what + result).map { (key: $0.0, value: $0.1) })
  }
}
