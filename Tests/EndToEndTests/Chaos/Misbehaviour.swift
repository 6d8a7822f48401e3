import Glibc
import PrismEngine
import PrismPacket
import PrismProtocol
import PrismTestSupport
import Testing

/// One thing that the other end of a POST may do wrong, and what the daemon is to make of it.
struct Misbehaviour: Sendable, CustomTestStringConvertible {
  /// When it begins.
  enum Moment: Sendable { case beforeRequest, afterHead, withinBody, afterRequest }

  /// The class that `ResponseClass` gives it.
  enum Meaning: Equatable, Sendable {
    case accepted, noReceipt, tooLarge, tooOld, unacceptable, misconfigured, unproven, unprovenRefusal, unavailable
  }

  /// The connection and the request that it has to work with.
  struct Case: Sendable {
    let wire: Wire
    /// Of the packet's POST, names in lower case; empty where it hadn't been read.
    let headers: [String: String]
    var key = DeliveryRig.key

    /// The packet's id; nil where it hadn't been read.
    var packet: String? { headers["prism-packet-id"] }
    /// The answer of an honest collector, head and body.
    var honest: String {
      let body = #"{"duplicate":false}"#
      return Self.answer(200, "Prism-Receipt: \(receipt(body))\r\n", body)
    }

    /// The receipt for an answer with this body.
    func receipt(_ body: String = "", refusal status: Int? = nil) -> String {
      let kind: RowKind = headers["content-type"] == RowKind.payload.contentType ? .payload : .meta
      guard let packet = try? PacketHeaders(kind: kind, { name in headers[name].map { [$0] } ?? [] }) else { return "" }
      return (try? PacketReceipt(key: key, refusal: status).text(for: packet, answer: Array(body.utf8))) ?? ""
    }

    /// A refusal as an honest collector proves it.
    func refusal(_ status: Int, _ body: String = "") -> String {
      Self.answer(status, "Prism-Verdict: \(receipt(body, refusal: status))\r\n", body)
    }

    static func answer(_ status: Int, _ headers: String = "", _ body: String = "") -> String {
      "HTTP/1.1 \(status) X\r\n\(headers)Content-Length: \(body.utf8.count)\r\n\r\n\(body)"
    }
  }

  let name: String
  var moment = Moment.afterRequest
  /// The packet is stored before.
  var isApplied = false
  let meaning: Meaning
  /// Costs the sender its whole deadline.
  var isStall = false
  /// Asks for an hour's pause.
  var asksForAnHour = false
  /// On a connection that answered before, and beside the answer to the packet: the sender is to ask once more.
  var isStray = false
  /// A 413 of a proxy: the packet is halved.
  var isLimit = false
  /// - Returns: the connection may go on.
  let act: @Sendable (Case) -> Bool

  var testDescription: String { name }
  /// A collector that took a packet never rejects it afterwards: its rows would be sent once more under other ids. A proxy
  /// that passed a packet on does not answer 413.
  var isRejection: Bool { meaning == .tooLarge || meaning == .tooOld || meaning == .unacceptable || isLimit }
}

extension Misbehaviour {
  static let all: [Misbehaviour] =
    statuses + receipts + retryAfters + silences + breaks + endless + malformed + applied + strays

  private static func answers(
    _ name: String, _ meaning: Meaning, isApplied: Bool = false, asksForAnHour: Bool = false, isLimit: Bool = false,
    _ text: @escaping @Sendable (Case) -> String
  ) -> Misbehaviour {
    Misbehaviour(
      name: name, isApplied: isApplied, meaning: meaning, asksForAnHour: asksForAnHour, isLimit: isLimit
    ) {
      $0.wire.send(text($0))
    }
  }

  private static func ends(
    _ name: String, at moment: Moment = .afterRequest, _ meaning: Meaning = .unavailable, isApplied: Bool = false,
    _ act: @escaping @Sendable (Case) -> Void
  ) -> Misbehaviour {
    Misbehaviour(name: name, moment: moment, isApplied: isApplied, meaning: meaning) {
      act($0)
      return false
    }
  }

  private static func stalls(
    _ name: String, at moment: Moment = .afterRequest, isApplied: Bool = false, _ text: String = ""
  ) -> Misbehaviour {
    Misbehaviour(name: name, moment: moment, isApplied: isApplied, meaning: .unavailable, isStall: true) {
      $0.wire.send(text)
      $0.wire.stall()
      return false
    }
  }

  /// Every class, without a receipt. Redirects point to a place that no sender may go to.
  private static let statuses: [Misbehaviour] =
    [300, 301, 302, 303, 304, 305, 307, 308].map { status in
      answers("status \(status)", .misconfigured) { _ in Case.answer(status, "Location: http://127.0.0.1:1/trap\r\n") }
    }
    + [401, 402, 403, 404, 405, 406, 407, 409, 411, 414, 417, 421, 426, 428, 431, 451].map { status in
      answers("status \(status)", .misconfigured) { _ in Case.answer(status, "", #"{"message":"no"}"#) }
    }
    + ["decryptionFailed", "macMismatch", "header"].map { code in
      answers("status 400, \(code)", .misconfigured) { _ in Case.answer(400, "", #"{"code":"\#(code)"}"#) }
    }
    + [400, 415, 422].map { status in
      answers("status \(status), proven", .unacceptable) { $0.refusal(status, #"{"message":"not this"}"#) }
    }
    + [answers("status 413, proven", .tooLarge) { $0.refusal(413) }]
    + [answers("status 410, proven", .tooOld) { $0.refusal(410) }]
    + [answers("status 413 of a proxy", .unprovenRefusal, isLimit: true) { _ in Case.answer(413) }]
    + [400, 410, 415, 422].flatMap { status in
      [
        answers("status \(status) of a proxy", .unprovenRefusal) { _ in Case.answer(status, "", "<html>no</html>") },
        answers("status \(status) that names the packet", .unprovenRefusal) {
          Case.answer(status, "", #"{"packetId":"\#($0.packet ?? "")"}"#)
        },
        answers("status \(status) with the proof of another status", .unprovenRefusal) {
          Case.answer(status, "Prism-Verdict: \($0.receipt(refusal: status + 1))\r\n")
        },
        answers("status \(status) in place of an acceptance", .unprovenRefusal, isApplied: true) {
          Case.answer(status, "Prism-Verdict: \($0.receipt())\r\nPrism-Receipt: \($0.receipt())\r\n")
        },
      ]
    }
    + [408, 425, 429, 500, 501, 502, 503, 504, 507, 511, 599].map { status in
      answers("status \(status)", .unavailable) { _ in Case.answer(status, "", "<html>later</html>") }
    }
    + [600, 999].map { status in answers("status \(status)", .unavailable) { _ in Case.answer(status) } }

  private static let receipts: [Misbehaviour] = [
    answers("2xx without a receipt", .noReceipt) { _ in Case.answer(200, "", #"{"duplicate":false}"#) },
    answers("204 without a receipt", .noReceipt) { _ in "HTTP/1.1 204 X\r\n\r\n" },
    answers("202 without a receipt", .noReceipt) { _ in Case.answer(202) },
    answers("2xx with another packet's receipt", .noReceipt) { _ in
      Case.answer(200, "Prism-Receipt: 018bcfe5-6800-7000-8000-000000000001\r\n")
    },
    answers("2xx with an invalid receipt", .noReceipt) { _ in Case.answer(200, "Prism-Receipt: ok\r\n") },
    answers("2xx with a receipt that names the packet and proves nothing", .noReceipt) {
      Case.answer(200, "Prism-Receipt: \($0.packet ?? "")\r\n")
    },
    answers("2xx with a receipt by another key", .noReceipt) {
      var scene = $0
      scene.key = Secret([UInt8](repeating: 9, count: 16))
      return Case.answer(200, "Prism-Receipt: \(scene.receipt())\r\n")
    },
    answers("2xx with HTML, as a captive portal", .noReceipt) { _ in
      Case.answer(200, "Content-Type: text/html\r\n", "<html><form action=login></html>")
    },
    answers("2xx with the receipt in the body", .noReceipt) {
      Case.answer(200, "", #"{"Prism-Receipt":"\#($0.packet ?? "")"}"#)
    },
    answers("2xx with two receipts", .noReceipt, isApplied: true) {
      let line = "Prism-Receipt: \($0.receipt())\r\n"
      return Case.answer(200, line + line)
    },
  ]

  private static let retryAfters: [Misbehaviour] =
    [
      ("in seconds", "1"), ("as a date that is over", "Sun, 06 Nov 1994 08:49:37 GMT"), ("of nothing", "0"),
      ("that is garbage", "soon"), ("that is negative", "-5"), ("with a fraction", "0.5"), ("that is empty", ""),
    ].map { name, value in
      answers("503 with a Retry-After \(name)", .unavailable) { _ in Case.answer(503, "Retry-After: \(value)\r\n") }
    }
    + [
      ("429 with a huge Retry-After", "99999999999999999999"),
      ("503 after the end of the world", "Fri, 31 Dec 9999 23:59:59 GMT"),
    ]
    .map { name, value in
      answers(name, .unavailable, asksForAnHour: true) { _ in Case.answer(503, "Retry-After: \(value)\r\n") }
    }

  private static let silences: [Misbehaviour] = [
    stalls("silence before the request", at: .beforeRequest), stalls("silence within the body", at: .withinBody),
    stalls("silence after the request"), stalls("silence within the status line", "HTTP/1.1 20"),
    stalls("silence within the headers", "HTTP/1.1 200 X\r\nContent-Le"),
    stalls("silence within the body of the answer", "HTTP/1.1 200 X\r\nContent-Length: 9\r\n\r\n{"),
    stalls("taken, then silence", isApplied: true),
    stalls("100 Continue, then silence", "HTTP/1.1 100 Continue\r\n\r\n"),
    Misbehaviour(name: "a slow drip", meaning: .unavailable, isStall: true) { scene in
      scene.wire.send("HTTP/1.1 200 X\r\nX-Slow: ")
      var pause = timespec(tv_sec: 0, tv_nsec: 20_000_000)
      while scene.wire.send("y") { nanosleep(&pause, nil) }
      return false
    },
  ]

  private static let breaks: [Misbehaviour] = [
    ends("closed before the request", at: .beforeRequest) { _ in },
    ends("reset before the request", at: .beforeRequest) { $0.wire.reset() },
    ends("closed after the head", at: .afterHead) { _ in },
    ends("reset after the head", at: .afterHead) { $0.wire.reset() },
    ends("closed within the body", at: .withinBody) { _ in },
    ends("reset within the body", at: .withinBody) { $0.wire.reset() },
    ends("closed without an answer") { _ in }, ends("reset without an answer") { $0.wire.reset() },
    ends("closed within the status line") { $0.wire.send("HTTP/1.1 2") },
    ends("closed within the headers") { $0.wire.send(String($0.honest.prefix(40))) },
    ends("reset within the headers") {
      $0.wire.send(String($0.honest.prefix(40)))
      $0.wire.reset()
    },
    ends("closed within the answer's body") { $0.wire.send(String($0.honest.dropLast(5))) },
    ends("503 before the body was read, then a reset", at: .afterHead) {
      $0.wire.send(Case.answer(503, "Connection: close\r\n"))
      $0.wire.reset()
    },
  ]

  private static let endless: [Misbehaviour] = [
    ends("endless headers") { scene in
      scene.wire.send("HTTP/1.1 200 X\r\n")
      while scene.wire.send("X-More: \(String(repeating: "y", count: 500))\r\n") {}
    },
    ends("an endless header") { scene in
      scene.wire.send("HTTP/1.1 200 X\r\nX-Long: ")
      while scene.wire.send(String(repeating: "y", count: 4000)) {}
    },
    ends("an endless body") { scene in
      scene.wire.send("HTTP/1.1 200 X\r\nPrism-Receipt: \(scene.receipt())\r\n\r\n")
      while scene.wire.send(String(repeating: "y", count: 16_000)) {}
    },
    ends("endless chunks") { scene in
      scene.wire.send("HTTP/1.1 200 X\r\nPrism-Receipt: \(scene.receipt())\r\nTransfer-Encoding: chunked\r\n\r\n")
      while scene.wire.send("2\r\nyy\r\n") {}
    },
    ends("100 Continue without end") { scene in while scene.wire.send("HTTP/1.1 100 Continue\r\n\r\n") {} },
    ends("102 Processing without end") { scene in while scene.wire.send("HTTP/1.1 102 Wait\r\n\r\n") {} },
  ]

  private static let malformed: [Misbehaviour] = [
    ends("HTTP/0.9: a page and no head") { $0.wire.send("<html>hello</html>\r\n") },
    ends("another protocol's greeting") { $0.wire.send("SSH-2.0-OpenSSH_9\r\n") },
    ends("a TLS alert") { $0.wire.send([0x15, 3, 3, 0, 2, 2, 40]) },
    ends("zeros") { $0.wire.send([UInt8](repeating: 0, count: 300)) },
    ends("a status that is no number") { $0.wire.send("HTTP/1.1 abc\r\nContent-Length: 0\r\n\r\n") },
    ends("101 Switching Protocols") { $0.wire.send("HTTP/1.1 101 X\r\nUpgrade: prism/9\r\n\r\n") },
    ends("a content length that is no number") { $0.wire.send("HTTP/1.1 500 X\r\nContent-Length: ten\r\n\r\n") },
    ends("a content length beyond the body", isApplied: true) {
      $0.wire.send("HTTP/1.1 200 X\r\nPrism-Receipt: \($0.receipt())\r\nContent-Length: 100\r\n\r\n{}")
    },
    ends("a content length of 9 exabytes", isApplied: true) {
      $0.wire.send(
        "HTTP/1.1 200 X\r\nPrism-Receipt: \($0.receipt())\r\nContent-Length: 9223372036854775807\r\n\r\n{}")
    },
    ends("chunks that are broken", isApplied: true) {
      $0.wire.send(
        "HTTP/1.1 200 X\r\nPrism-Receipt: \($0.receipt())\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n"
      )
    },
    ends("chunks without their end", isApplied: true) {
      $0.wire.send(
        "HTTP/1.1 200 X\r\nPrism-Receipt: \($0.receipt())\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n")
    },
    ends("a content length short of the body", .accepted, isApplied: true) {
      $0.wire.send(
        "HTTP/1.1 200 X\r\nPrism-Receipt: \($0.receipt("{}"))\r\nContent-Length: 2\r\n\r\n{}HTTP/1.1 500 X\r\n\r\n")
    },
    ends("an encoding that was not asked for", .accepted, isApplied: true) {
      let headers = "Prism-Receipt: \($0.receipt("not gzip"))\r\nContent-Encoding: gzip\r\n"
      $0.wire.send(Case.answer(200, headers, "not gzip"))
    },
  ]

  /// A server or a proxy writes to a connection that it keeps open, as the next request is on its way.
  private static let strays: [Misbehaviour] = [400, 408, 413, 415, 422, 500].map { status in
    Misbehaviour(
      name: "a stray \(status) before the answer", moment: .afterHead, isApplied: true,
      meaning: [400, 413, 415, 422].contains(status) ? .unproven : .unavailable, isStray: true
    ) { $0.wire.send(Case.answer(status, "Content-Type: text/html\r\n", "<html>Bad Request</html>")) }
  }

  /// The packet is stored, and the sender does not learn it.
  private static let applied: [Misbehaviour] = [
    ends("taken, then closed without an answer", isApplied: true) { _ in },
    ends("taken, then reset without an answer", isApplied: true) { $0.wire.reset() },
    ends("taken, then closed within the headers", isApplied: true) { $0.wire.send(String($0.honest.prefix(60))) },
    ends("taken, then reset within the body", isApplied: true) {
      $0.wire.send(String($0.honest.dropLast(3)))
      $0.wire.reset()
    },
    answers("taken, and answered 500", .unavailable, isApplied: true) { _ in Case.answer(500) },
    answers("taken, and answered 401", .misconfigured, isApplied: true) { _ in Case.answer(401) },
    answers("taken, and answered with a redirect", .misconfigured, isApplied: true) { _ in
      Case.answer(302, "Location: http://127.0.0.1:1/\r\n")
    },
    answers("taken, and answered with HTML", .noReceipt, isApplied: true) { _ in Case.answer(200, "", "<html></html>")
    },
    answers("taken, and answered after five interim answers", .accepted, isApplied: true) {
      String(repeating: "HTTP/1.1 103 Early\r\nLink: <x>\r\n\r\n", count: 5) + $0.honest
    },
    answers("taken, and answered twice", .accepted, isApplied: true) { $0.honest + Case.answer(500) },
  ]
}
