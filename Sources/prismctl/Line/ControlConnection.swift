import Glibc
import PrismBase
import PrismClient
import PrismControl
import PrismProtocol

/// Asks the daemon over its control socket: one request, one or more answers, the last with `"done":true`.
struct ControlConnection {
  /// A command that lasts long is waited for as long as the daemon answers another question: after each silence, and in time.
  struct Probing {
    var everySeconds = 15, withinSeconds = 45
  }

  private let path: String
  /// How long each part of an answer may take; nil: as long as the daemon is alive.
  private let timeoutSeconds: Int?
  /// Answers become JSON output, which escapes control characters by itself. Else all their strings are made printable
  /// here, for every command.
  private let isExact: Bool
  private let probing: Probing

  /// - Parameter isExact: nil: with `--json`.
  init(_ invocation: Invocation, timeoutSeconds: Int? = nil, isExact: Bool? = nil) {
    (path, self.timeoutSeconds) = (invocation.controlSocket, timeoutSeconds)
    (self.isExact, probing) = (isExact ?? invocation.has("--json"), Probing())
  }

  init(path: String, timeoutSeconds: Int?, isExact: Bool, _ probing: Probing = Probing()) {
    (self.path, self.timeoutSeconds, self.isExact, self.probing) = (path, timeoutSeconds, isExact, probing)
  }

  /// - Parameter onAnswer: each line as it comes, the last one included.
  /// - Throws: 69 if no program listens; the daemon's own exit code and text for an error of it.
  func ask(_ request: ControlRequest, _ onAnswer: (AnswerLine) throws(Failure) -> Void) throws(Failure) {
    guard !path.isEmpty else {
      throw .usage(
        "the control socket's path is empty; look at --control and $PRISM_CONTROL (unset it for the usual one)")
    }
    var failure: Failure?
    do throws(ClientError) {
      let stream = try SocketStream(
        path: path, timeout: .seconds(timeoutSeconds ?? probing.everySeconds), onSilence: { isAlive })
      try stream.exchange(request.bytes + [UInt8(ascii: "\n")]) { line in
        do throws(Failure) { return try take(line, onAnswer) } catch {
          failure = error
          return true
        }
      }
    } catch { throw self.failure(error) }
    if let failure { throw failure }
  }

  /// False where the time is limited.
  private var isAlive: Bool {
    guard timeoutSeconds == nil else { return false }
    let probe = ControlConnection(path: path, timeoutSeconds: probing.withinSeconds, isExact: true)
    var answers = false
    do throws(Failure) { try probe.ask(ControlRequest(.network)) { _ in answers = true } } catch {
      answers = error.exitCode != Failure.unavailable
    }
    return answers
  }

  /// Answers whether it was the last.
  private func take(_ line: [UInt8], _ onAnswer: (AnswerLine) throws(Failure) -> Void) throws(Failure) -> Bool {
    let answer: JSONValue
    do { answer = try JSONValue(parsing: line) } catch {
      throw Failure(
        Failure.software, "\(path): the daemon's answer is not JSON; are prismd and prismctl of one version?")
    }
    // The ingest socket answers each line, and is asked for nothing more.
    if AnswerLine(answer).isOfIngest {
      throw .usage("\(path): this is the ingest socket; --control and $PRISM_CONTROL name the control socket")
    }
    // The faults of a configuration are a line each; `runPrismctl` makes the lines printable.
    if let error = AnswerLine(answer)[Answers.error] {
      throw Failure(Int32(clamping: error.exitCode), error.message)
    }
    let line = AnswerLine(isExact ? answer : answer.printable())
    try onAnswer(line)
    return line[Answers.done] ?? false
  }

  private func failure(_ error: ClientError) -> Failure {
    guard case .unreachable(_, let code) = error else {
      let what =
        if case .timedOut = error {
          "takes connections and does not answer; `journalctl -u prismd -n 50` may say why, a restart ends it"
        } else {
          "closed the connection before its answer was complete"
        }
      return Failure(Failure.unavailable, "\(path): the daemon \(what)")
    }
    let reason = String(cString: strerror(code))
    switch code {
    case ENAMETOOLONG: return .usage("--control: a socket's path has at most \(UnixAddress.pathBytesMax) bytes")
    case EACCES, EPERM:
      return Failure(Failure.notPermitted, "\(path): \(reason); run it as root, or as a member of control.group")
    default:
      return Failure(
        Failure.unavailable,
        "\(path): no daemon listens there (\(reason)); start it with `systemctl start prismd`, or try prism with `prismd --dev`"
      )
    }
  }
}
