import PrismBase
import PrismHTTP
import PrismPacket
import PrismProtocol
import PrismSQL
import PrismSQLite

/// Counts the devices that send for a trigger, in tables that all replicas share (docs/recorder.md, "A sample of the fleet").
actor TriggerSample {
  /// A trigger's devices are counted for this time from its first question on.
  static let windowMilliseconds: Int64 = 24 * 3_600_000
  /// Triggers of a namespace whose devices are counted.
  static let rulesMax = 1000

  /// An answer to a device that asks. `uncounted`: the namespace has too many triggers, and the reports leave.
  enum Outcome: String { case leaves, enough, uncounted }

  private enum WindowColumn: String, SQLiteColumn { case namespace, rule, devices, endTime }
  private enum DeviceColumn: String, SQLiteColumn { case namespace, rule, device }

  private let executor = DispatchQueueExecutor(label: "prism.collector.triggers")
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }
  private let session: FleetSession
  private let time: any TimeSource

  init(_ database: FleetDatabase, time: any TimeSource) { (session, self.time) = (FleetSession(database), time) }

  /// A device may send for a trigger if it may already in this window, or if fewer than `devicesMax` may.
  func outcome(
    of device: String, for rule: String, in namespace: NamespaceName, devicesMax: Int
  ) throws(StoreFailure) -> Outcome {
    let (now, place): (Int64, [any SQLConvertible]) = (time.unixMilliseconds, [namespace.text, rule])
    return try session.write { statements in
      try Self.endWindows(now, statements)
      let rules = try statements.integer(
        "SELECT count(*) FROM trigger_windows WHERE namespace = $1 AND rule <> $2", place)
      guard rules ?? 0 < Self.rulesMax else { return .uncounted }
      var count = 0
      // The row is locked, so replicas count one after the other.
      try statements.insert(
        WindowColumn.self, into: "trigger_windows", rows: [place + [0, now + Self.windowMilliseconds]],
        onConflict: "(namespace, rule) DO UPDATE SET devices = trigger_windows.devices", returning: WindowColumn.self
      ) { count = $0.int(.devices) }
      let own = "FROM trigger_devices WHERE namespace = $1 AND rule = $2 AND device = $3"
      if try statements.integer("SELECT 1 \(own)", place + [device]) != nil { return .leaves }
      guard count < devicesMax else { return .enough }
      try statements.insert(DeviceColumn.self, into: "trigger_devices", place + [device])
      try statements.run("UPDATE trigger_windows SET devices = devices + 1 WHERE namespace = $1 AND rule = $2", place)
      return .leaves
    }
  }

  /// Clocks of replicas may differ by a day: a window that ends later was begun before the clock went back.
  private static func endWindows(_ now: Int64, _ statements: SQLStatements) throws {
    let last = now + 2 * windowMilliseconds
    let ended = try statements.run(
      "DELETE FROM trigger_windows WHERE end_time <= $1 OR end_time > $2 RETURNING 1",
      [now, last])
    guard ended > 0 else { return }
    try statements.run(
      """
      DELETE FROM trigger_devices WHERE NOT EXISTS (SELECT 1 FROM trigger_windows w
        WHERE w.namespace = trigger_devices.namespace AND w.rule = trigger_devices.rule)
      """)
  }
}

/// `POST /prism/intent`: whether a device may send for a trigger (docs/packet.md, "The intent of a trigger").
struct IntentAnswers {
  let collector: Collector
  private var devices: DeviceGate { collector.devices }

  func answer(_ request: HTTPRequest) async throws(CollectorRefusal) -> HTTPResponse {
    do throws(CollectorRefusal) {
      try await collector.access.checkSender(request)
      let (question, namespace, cipher) = try IntentQuestion.read(request)
      try devices.check(question.device)
      try await devices.standings.check(question.device)
      let key = try await collector.openers.key(question.keyID, of: question.device, namespace, cipher)
      guard let code = try? ProbeCode(key: key, for: .intent), let expected = try? code.ofQuestion(request.body),
        ProbeCode.areEqual(request.header("prism-mac"), expected)
      else { throw CollectorRefusal(403, "Prism-Mac is not that of the device's key over this body") }
      devices.admission.count(question.device)
      let outcome = try await outcome(of: question, namespace)
      var answer = IntentAnswer()
      answer.leaves = outcome != .enough
      let body = Array(answer.controlJSON.text.utf8)
      guard let mac = try? code.ofAnswer(body, nonce: question.nonce) else {
        throw CollectorRefusal(503, "the answer could not be signed; ask again", retryAfterSeconds: 5)
      }
      collector.counts.count(.intents, outcome.rawValue)
      return HTTPResponse(
        status: 200, headers: [("Content-Type", "application/json"), ("Prism-Mac", mac)], body: body)
    } catch {
      collector.counts.count(.intents, "refused_\(error.status)")
      throw error
    }
  }

  private func outcome(
    of question: IntentQuestion, _ namespace: NamespaceName
  ) async throws(CollectorRefusal) -> TriggerSample.Outcome {
    do throws(StoreFailure) {
      return try await devices.sample.outcome(
        of: question.device, for: question.rule, in: namespace, devicesMax: question.devices)
    } catch { throw CollectorRefusal(503, "devices can't be counted now; ask again", retryAfterSeconds: 60) }
  }
}

extension IntentQuestion {
  /// - Throws: 400 for a body that is no question.
  fileprivate static func read(
    _ request: HTTPRequest
  ) throws(CollectorRefusal) -> (IntentQuestion, NamespaceName, Cipher) {
    guard request.body.count <= bodyBytesMax, let json = try? JSONValue(parsing: request.body) else {
      throw CollectorRefusal(400, "an intent is a JSON object of at most \(bodyBytesMax) bytes")
    }
    let question = IntentQuestion(controlJSON: json)
    guard let namespace = NamespaceName(question.namespace), let cipher = Cipher(rawValue: question.cipher),
      DeviceID.isValid(question.device), (1...ruleBytesMax).contains(question.rule.utf8.count),
      ReportTrigger.devicesRange.contains(question.devices), (1...128).contains(question.nonce.utf8.count)
    else {
      throw CollectorRefusal(
        400, "an intent needs device, namespace, keyId, cipher, nonce, rule and devices as docs/packet.md says")
    }
    return (question, namespace, cipher)
  }
}
