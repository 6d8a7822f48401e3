import PrismBase
import PrismConfig
import PrismPacket
import PrismProtocol

/// The request that tells a receiver of a notice.
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
