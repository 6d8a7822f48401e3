import PrismConfig
import PrismControl
import PrismPacket
import PrismProtocol

/// A probe of one collector, as the namespaces that share its url, key, token and certificates would send to it.
struct CollectorProbe: Sendable {
  let url: String
  let namespaces: [NamespaceName]
  let deviceID: String
  /// nil: the namespaces have no key.
  let key: DaemonConfiguration.Key?
  let token: HeldFile?
  let tls: TLSFiles
  /// The last packet of one of the namespaces was accepted here, or refused with a code of docs/packet.md.
  let isProven: Bool
  /// Why this machine has no network; nil: it has one, or the collector is on it.
  var offline: String?

  /// Of the packets that this daemon makes.
  static let version = Int(PacketHeaders.version) ?? 0

  var names: String { namespaces.map(\.text).joined(separator: ", ") }

  /// A question and the request that carries it. - Throws: `internal` if OpenSSL has no memory.
  func request(now: Int64, timeout: Duration) throws(PacketError) -> (question: ProbeQuestion, request: TransferRequest)
  {
    var question = ProbeQuestion()
    question.version = Self.version
    (question.device, question.namespaces) = (deviceID, namespaces.map(\.text))
    (question.keyID, question.nonce, question.time) = (key?.id ?? "", try ProbeCode.newNonce(), Int(now))
    let body = Array(question.controlJSON.text.utf8)
    var headers = [(name: "Content-Type", value: ProbeQuestion.contentType)]
    if let key { headers.append(("Prism-Mac", try ProbeCode(key: key.secret).ofQuestion(body))) }
    if let token { headers.append(token.authorization) }
    var request = TransferRequest(
      url: CollectorAddress(url).base + ProbeQuestion.path, headers: headers, body: body, connectTimeout: timeout,
      timeout: timeout)
    request.tls = tls
    return (question, request)
  }

  /// The facts of the answer, each a finding of its own.
  /// - Parameter now: this machine's clock when the answer came, in milliseconds since 1970.
  func findings(_ outcome: PostAnswer.Outcome, to question: ProbeQuestion, now: Int64) -> [Finding] {
    switch outcome {
    case .failure(let failure, let detail):
      let isOffline = [.resolve, .connect, .timeout].contains(failure)
      if isOffline, let offline {
        let advice = "give this machine a default route (`ip route` shows its routes), then `prismctl network`"
        return [Finding(check, .fault, "\(url): \(offline); \(detail)", advice: advice)]
      }
      return [Finding(check, .fault, "\(url): \(detail)", advice: Self.advice(failure, detail))]
    case .response(let status, let headers, let body):
      if status == 200, let json = try? JSONValue(parsing: body) {
        let answer = ProbeAnswer(controlJSON: json)
        if !answer.collector.isEmpty {
          return findings(answer, isSigned: isSigned(body, headers["prism-mac"], question.nonce), now: now)
        }
      }
      return [other(status, headers, body)] + [Self.clock(headers, url, now: now)].compactMap { $0 }
    }
  }

  private var check: String { "url \(names)" }

  private func isSigned(_ body: [UInt8], _ mac: String?, _ nonce: String) -> Bool {
    guard let key, let expected = try? ProbeCode(key: key.secret).ofAnswer(body, nonce: nonce) else { return false }
    return ProbeCode.areEqual(mac, expected)
  }

  // MARK: An answer of a collector

  private func findings(_ answer: ProbeAnswer, isSigned: Bool, now: Int64) -> [Finding] {
    let reached = Finding(check, .ok, "\(url) is \(answer.collector.cut(atBytes: 100))")
    let refused = answer.refusedNamespaces.prefix(10).map {
      Finding(
        "namespace \($0.cut(atBytes: 64))", .fault, "the collector at \(url) does not take it",
        advice: "allow it at the collector, or send it to another one")
    }
    return [reached, keyFinding(answer.key, isSigned: isSigned), tokenFinding(answer.token)] + refused
      + [version(answer.versions), Self.clock(Int64(answer.time), url, now: now)].compactMap { $0 }
  }

  private func keyFinding(_ verdict: ProbeAnswer.Verdict, isSigned: Bool) -> Finding {
    let (check, id) = ("key of \(names)", key?.id ?? "")
    switch verdict {
    case .ok where isSigned: return Finding(check, .ok, "the collector has the same key `\(id)`")
    case .ok:
      return Finding(
        check, .fault, "what answers at \(url) says that it has the key `\(id)`, and does not prove it",
        advice: "look at proxies before the collector, and at the url")
    case .unknown:
      return Finding(
        check, .fault, "the collector at \(url) has no key of the id `\(id)`",
        advice: Doctor.otherKey(id))
    case .hidden:
      return Finding(check, .skipped, "the collector tells this only a sender that has the key or a token")
    case .wrong, .missing, .notAsked:
      return Finding(
        check, .fault, "the key `\(id)` here and the collector's of that id differ",
        advice: Doctor.sameKey(key?.file))
    }
  }

  private func tokenFinding(_ verdict: ProbeAnswer.Verdict) -> Finding {
    let check = "token of \(names)"
    let advice = Doctor.token(token?.path)
    switch verdict {
    case .ok: return Finding(check, .ok, "the collector takes it")
    case .notAsked: return Finding(check, .ok, "the collector needs no token")
    case .missing:
      return Finding(
        check, .fault, "the collector at \(url) asks for a token, and no token is configured", advice: advice)
    case .wrong, .unknown, .hidden:
      return Finding(
        check, .fault, "the collector at \(url) does not take the token of \(token?.path ?? "tokenFile")",
        advice: advice)
    }
  }

  /// nil where the collector takes this daemon's packets.
  private func version(_ versions: [Int]) -> Finding? {
    guard !versions.contains(Self.version) else { return nil }
    let taken = versions.prefix(10).map(String.init).joined(separator: ", ")
    return Finding(
      "version of \(names)", .fault, "the collector at \(url) accepts packets of version \(taken), not \(Self.version)",
      advice: "use a collector of this daemon's version")
  }

  // MARK: An answer of something else

  /// A receiver of another make need not know probes: if packets are accepted, it is one.
  private func other(_ status: Int, _ headers: [String: String], _ body: [UInt8]) -> Finding {
    // nginx answers 400, and prism-collector 401.
    if [400, 401, 403].contains(status), String(decoding: body.prefix(1000), as: UTF8.self).contains("certificate") {
      let what =
        tls.certFile.map { "does not take the client certificate of \($0.path)" }
        ?? "asks for a client certificate, and tls.certFile is not set"
      return Finding(
        check, .fault, "\(url) \(what): status \(status)", advice: Doctor.certificate(tls.certFile?.path))
    }
    let server = headers["server"].map { " (Server: \($0.cut(atBytes: 80)))" } ?? ""
    switch status {
    case 300...399:
      let place = headers["location"].map { " to \($0.cut(atBytes: 200))" } ?? ""
      return Finding(
        check, .fault, "\(url) redirects\(place), which is not followed", advice: "set url to the collector itself")
    case 408, 425, 429, 500, 502...599:
      return Finding(
        check, .warning, "\(url) answers with status \(status)\(server) at present",
        advice: "look at the collector's log; packets are sent again until it takes them")
    case _ where isProven:
      return Finding(
        check, .ok, "\(url) answers packets as a collector does; it does not know probes (status \(status))")
    case 401, 403, 407:
      return Finding(
        check, .fault, "\(url): something before the collector asks for credentials: status \(status)\(server)",
        advice: "look at proxies before the collector, and at the url")
    default:
      return Finding(
        check, .fault, "\(url) is a web server\(server), but no prism-collector: status \(status) to a probe",
        advice: "look at the url's host, port and path; a receiver of your own passes once it takes a packet")
    }
  }

  // MARK: Clocks

  private static func clock(_ headers: [String: String], _ url: String, now: Int64) -> Finding? {
    headers["date"].flatMap { HTTPDate.unixMilliseconds($0, now: now) }.flatMap { clock($0, url, now: now) }
  }

  /// nil where the two clocks agree.
  private static func clock(_ other: Int64, _ url: String, now: Int64) -> Finding? {
    let ahead = (now - other) / 1000
    guard abs(ahead) > Doctor.clockSkewMax.components.seconds else { return nil }
    return Finding(
      "clock", .warning, "this machine's is \(abs(ahead)) s \(ahead > 0 ? "ahead of" : "behind") that of \(url)",
      advice: "find out which one is wrong: `timedatectl` tells whether this one is kept by NTP")
  }

  private static func advice(_ failure: PostAnswer.Failure, _ detail: String) -> String {
    switch failure {
    case .resolve: "look at the url's host name, and at the name servers (`resolvectl query HOST`)"
    case .connect: "look whether the collector listens there, and at firewalls between"
    case .tls where detail.contains("does not speak TLS"):
      "set `tls` of the collector, or write http:// where it is on this machine"
    case .tls where detail.contains("alert"): Doctor.certificate(nil)
    case .tls:
      "look at the certificates: tls.caFile must hold the authority of the collector's, the url must have its name, "
        + "and all must be in date"
    case .timeout: "packets are lost on the way, or the collector is overloaded"
    case .reset, .badResponse:
      "what listens there does not speak HTTP as a collector does: look at the url's port, and whether it needs https"
    case .cancelled: "ask again"
    case .local: "look at the files that the namespace's tls keys name"
    }
  }
}
