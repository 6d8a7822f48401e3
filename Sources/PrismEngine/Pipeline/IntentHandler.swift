import PrismBase
import PrismConfig
import PrismPacket
import PrismProtocol
import PrismStore

/// Asks the collector of one namespace before the reports of sampled triggers leave (docs/recorder.md, "A sample of the fleet").
/// Its pipeline owns it, and calls it on its own turns only.
final class IntentHandler {
  private let host: PipelineHost
  private var isAsking = false, isWantedAgain = false
  /// A trigger may wait for an answer: after a start, a failure or a change, and when one fired.
  var mayWait = true
  private var failuresInRow = 0
  /// After a failure, and while delivery pauses. On the uptime clock.
  private(set) var tryAt: Duration?

  init(_ host: PipelineHost) { self.host = host }

  /// Nothing is asked, and no answer is missing.
  var isQuiet: Bool { !isAsking && failuresInRow == 0 }
  private var now: Duration { host.parts.time.uptime }

  /// Something happened for which a pause ends early.
  func retry(at time: Duration) {
    mayWait = true
    if tryAt != nil { tryAt = time }
  }

  /// A pause may be over.
  func tick() {
    if let tryAt, tryAt <= now { ask() }
  }

  /// Asks about all triggers whose reports wait for it: an upload begins.
  func ask() {
    isWantedAgain = isAsking
    let gates = host.gates(.meta)
    guard mayWait, !isAsking, !host.isStopping(), tryAt.map({ $0 <= now }) ?? true, !gates.isCarrying else { return }
    tryAt = nil
    // A gate that opens by an event asks for an upload then.
    if case .shut(let gate) = gates.verdict {
      tryAt = gate.opensIn.map { now + $0 }
      return
    }
    isAsking = true
    host.askIntents()
  }

  nonisolated(nonsending) func perform() async {
    let (parts, namespace) = (host.parts, host.settings().namespace)
    let key = "intents.\(namespace)"
    mayWait = false
    do {
      for intent in try await parts.store.intents(of: namespace) { try await ask(intent) }
      failuresInRow = 0
      parts.log.faultEnded(key, "the collector answers about triggers again", ["namespace": namespace.text])
    } catch {
      let failure = error as? IntentFailure ?? IntentFailure(cause: "\(error)")
      mayWait = true
      failuresInRow += 1
      let pause = Backoff.pause(afterFailures: failuresInRow, isConfiguration: false, random: parts.random.next())
      tryAt = now + max(pause, failure.retryAfter ?? .zero, .seconds(1))
      parts.log.fault(
        key, "reports of a trigger wait until the collector says whether they are to leave; asked again",
        ["namespace": namespace.text, "cause": failure.cause])
    }
    isAsking = false
    // A trigger may have fired since the reports were looked for.
    if isWantedAgain { ask() }
    host.arm()
  }

  private nonisolated(nonsending) func ask(_ intent: ReleaseIntent) async throws {
    let (parts, settings) = (host.parts, host.settings())
    guard let configuration = settings.configuration, let seal = settings.seal(isMetered: false) else { return }
    let exchange = try IntentExchange(intent, seal, configuration)
    let answer = await parts.dictionaries.transport.post(exchange.request)
    if host.gates(.meta).isMetered { host.book(answer.bytesSent + answer.bytesReceived) }
    let leaves = try exchange.leaves(answer.outcome, now: parts.time.unixMilliseconds)
    try await parts.store.decide(
      intent, of: settings.namespace, leaves: leaves, ringBytesMax: configuration.ring.bytes)
    parts.log.info(
      leaves ? "the reports of a trigger leave" : "enough devices have sent for a trigger; its reports stay kept",
      ["namespace": settings.namespace.text, "trigger": intent.rule, "reports": String(intent.reports)])
    if leaves { for kind in RowKind.reports { host.want(kind) } }
  }
}

/// The question whether the reports of a trigger may leave, and what its answer says.
private struct IntentExchange {
  private let code: ProbeCode
  private let nonce: String
  /// A receiver of one's own knows no intents: it counts no devices.
  private let trustsRefusals: Bool
  let request: TransferRequest

  /// - Throws: `internal` if OpenSSL has no memory.
  init(_ intent: ReleaseIntent, _ seal: PacketSeal, _ configuration: NamespaceConfiguration) throws(PacketError) {
    trustsRefusals = configuration.trustsRefusals
    (code, nonce) = (try ProbeCode(key: seal.key, for: .intent), try ProbeCode.newNonce())
    var question = IntentQuestion()
    (question.device, question.namespace) = (seal.deviceID, configuration.name.text)
    (question.keyID, question.cipher, question.nonce) = (seal.keyID, seal.cipher.rawValue, nonce)
    (question.rule, question.devices) = (intent.rule, intent.devices)
    (question.reports, question.bytes) = (intent.reports, intent.bytes)
    let body = Array(question.controlJSON.text.utf8)
    var request = TransferRequest(
      url: (configuration.url.map { CollectorAddress($0).base } ?? "") + IntentQuestion.path,
      headers: [("Content-Type", IntentQuestion.contentType), ("Prism-Mac", try code.ofQuestion(body))]
        + configuration.authorization, body: body, timeout: .seconds(60))
    request.tls = configuration.tls
    self.request = request
  }

  /// - Throws: `IntentFailure`, or `PacketError.internal`.
  func leaves(_ outcome: PostAnswer.Outcome, now: Int64) throws -> Bool {
    switch outcome {
    case .failure(let failure, let detail):
      throw IntentFailure(cause: "\(failure.rawValue): \(detail.cut(atBytes: 200))")
    case .response(200, let headers, let body):
      guard ProbeCode.areEqual(headers["prism-mac"], try code.ofAnswer(body, nonce: nonce)),
        let json = try? JSONValue(parsing: body)
      else { throw IntentFailure(cause: "the answer is not signed with the namespace's key") }
      return IntentAnswer(controlJSON: json).leaves
    case .response(404, _, _) where trustsRefusals, .response(405, _, _) where trustsRefusals: return true
    case .response(let status, let headers, _):
      let after = headers["retry-after"].flatMap { RetryAfter.parse($0, serverDate: headers["date"], now: now) }
      let hint = status == 404 || status == 405 ? ": does `url` lead to a collector that counts devices?" : ""
      throw IntentFailure(cause: "status \(status)\(hint)", retryAfter: after)
    }
  }
}

/// The collector did not say whether the reports may leave.
private struct IntentFailure: Error {
  var cause: String
  /// The pause that the collector asks for.
  var retryAfter: Duration?
}
