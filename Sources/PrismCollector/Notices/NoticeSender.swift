import PrismBase
import PrismConfig
import PrismCurl
import PrismOutputs
import PrismPacket
import PrismProtocol

/// Delivers the notices of one receiver, one at a time. An attempt that has no answer within 10 s has failed; no redirect is followed.
actor NoticeSender {
  static let pause: Duration = .seconds(5)
  static let attemptsMax = 20
  private static let (timeout, lease): (Duration, Int64) = (.seconds(10), 60_000)
  private static let batch = 20

  private let receiver: CollectorConfiguration.Notice
  private let store: NoticeStore
  private let time: any TimeSource
  private let log: Logger
  private let executor = DispatchQueueExecutor(label: "prism.collector.notice")
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }
  private let client = CurlClient()

  init(_ receiver: CollectorConfiguration.Notice, _ collector: Collector) {
    (self.receiver, store) = (receiver, collector.access.page.notices)
    (time, log) = (collector.time, collector.log)
  }

  /// The time until the next attempt, by those that failed: 5 s, 10 s and on, at most an hour.
  static func backoff(_ attempts: Int) -> Int64 { min(3_600_000, 5000 << Int64(min(max(attempts - 1, 0), 20))) }

  /// Tries all that are due, each once. - Returns: whether more are due.
  func send() async throws(StoreFailure) -> Bool {
    let due = try await store.due(receiver.name, now: time.unixMilliseconds, limit: Self.batch)
    for notice in due {
      guard !Task.isCancelled else { return false }
      guard try await store.claim(notice, until: time.unixMilliseconds + Self.lease) else { continue }
      try await store.settle(attempt(notice))
    }
    return due.count == Self.batch
  }

  private func attempt(_ notice: Notice) -> Notice {
    var notice = notice
    notice.attempts += 1
    let request = NoticeRequest(notice, to: receiver, now: time.unixMilliseconds)
    do throws(OutputFailure) {
      let answer = try client.post(
        request.body, to: receiver.url, headers: request.headers, timeout: Self.timeout, takesHead: true)
      notice.result = "status \(answer.status)"
      switch answer.status {
      case 200..<300: notice.state = .delivered
      // A redirect, or what the receiver will not take: an operator mends the address.
      case 300..<500 where ![408, 425, 429].contains(answer.status): notice.state = .dead
      default: break
      }
    } catch { notice.result = String(decoding: "\(error)".utf8.prefix(300), as: UTF8.self) }
    if notice.state == .waiting {
      if notice.attempts >= Self.attemptsMax { notice.state = .dead }
      notice.dueTime = time.unixMilliseconds + Self.backoff(notice.attempts)
    }
    if notice.state == .dead {
      log.warning(
        "a notice was not delivered, and is a dead letter",
        ["receiver": receiver.name, "notice": notice.id, "result": notice.result ?? ""])
    }
    return notice
  }

  func run() async { await time.keepLooking(each: Self.pause) { try await self.send() } }
}

struct NoticeRequest: Sendable, Equatable {
  let body: [UInt8]
  private(set) var headers: [String]

  /// - Parameter now: milliseconds since 1970.
  init(_ notice: Notice, to receiver: CollectorConfiguration.Notice, now: Int64) {
    body = Self.value(notice, receiver.form).bytes
    headers = ["Content-Type: application/json", "Prism-Notice-Id: \(notice.id)"]
    guard let secret = receiver.secret?.content else { return }
    let seconds = now / 1000
    let code = (try? Hashing.hmacSHA256(key: secret, Array("\(seconds).".utf8) + body)) ?? []
    headers.append("Prism-Signature: t=\(seconds),v1=\(Hex.encode(code))")
  }

  private static func value(_ notice: Notice, _ form: CollectorConfiguration.Notice.Form) -> JSONValue {
    let items = notice.items.map { $0.object.isEmpty ? $0.text : "\($0.text) (\($0.object))" }
    let more = items.isEmpty ? 0 : notice.count - items.count
    let lines = items + (more > 0 ? ["and \(more) more"] : [])
    switch form {
    case .json: return notice.json
    case .slack:
      // Slack reads these three as marks.
      let text = ([notice.title] + lines.map { "• " + $0 }).joined(separator: "\n").replacing("&", with: "&amp;")
        .replacing("<", with: "&lt;").replacing(">", with: "&gt;")
      return ["text": .string(text)]
    case .alertmanager:
      return [
        [
          "labels": [
            "alertname": .string("Prism" + (notice.event?.rawValue.capitalizedFirst ?? "Test")),
            "notice": .string(notice.id),
          ],
          "annotations": ["summary": .string(notice.title), "description": .string(lines.joined(separator: "\n"))],
          "startsAt": .string(RFC3339.text(unixMilliseconds: notice.time)),
        ]
      ]
    }
  }
}

extension String {
  fileprivate var capitalizedFirst: String { prefix(1).uppercased() + dropFirst() }
}
