import PrismBase
import PrismHTTP
import PrismPacket
import PrismProtocol

// `POST /prism/probe`: says what would become of a sender's packets, and stores nothing (docs/packet.md, "The probe").
extension Collector {
  static let packetVersions = [PacketHeaders.version].compactMap { Int($0) }

  /// - Throws: 400 for a body that is no question.
  func probe(_ request: HTTPRequest) async throws(CollectorRefusal) -> HTTPResponse {
    guard request.body.count <= ProbeQuestion.bodyBytesMax, let json = try? JSONValue(parsing: request.body),
      json.object != nil
    else {
      counts.count(.probes, "refused_400")
      throw CollectorRefusal(400, "a probe is a JSON object of at most \(ProbeQuestion.bodyBytesMax) bytes")
    }
    let question = ProbeQuestion(controlJSON: json)
    guard (1...128).contains(question.nonce.utf8.count) else {
      counts.count(.probes, "refused_400")
      throw CollectorRefusal(400, "nonce: 1 to 128 bytes are needed")
    }
    let codes = await codes(of: question)
    let code = codes.first { code in
      (try? code.ofQuestion(request.body)).map { ProbeCode.areEqual(request.header("prism-mac"), $0) } ?? false
    }
    let answer = await answer(to: question, request, isSigned: code != nil, hasKey: !codes.isEmpty)
    let body = Array(answer.controlJSON.text.utf8)
    var headers = [(name: "Content-Type", value: "application/json")]
    if answer.key == .ok, let mac = try? code?.ofAnswer(body, nonce: question.nonce) {
      headers.append(("Prism-Mac", mac))
    }
    let isUsable = answer.key == .ok && (answer.token == .ok || answer.token == .notAsked)
    counts.count(.probes, isUsable ? "ok" : "would_refuse")
    return HTTPResponse(status: 200, headers: headers, body: body)
  }

  /// The codes that the question may be signed with; empty if the collector has no key of its id. A derived key has a
  /// length for each cipher.
  private func codes(of question: ProbeQuestion) async -> [ProbeCode] {
    guard options.keys[question.keyID] != nil else { return [] }
    let keys = openers.keys
    try? await keys.refresh(question.keyID)  // the answer is by what is known
    return (keys.derives(question.keyID) ? [Cipher.aes128GCM, .aes256GCM] : [.aes256GCM]).compactMap { cipher in
      let key = try? keys.secret(question.keyID, of: question.device, cipher: cipher)
      return key.flatMap { try? ProbeCode(key: $0) }
    }
  }

  private func answer(
    to question: ProbeQuestion, _ request: HTTPRequest, isSigned: Bool, hasKey: Bool
  ) async -> ProbeAnswer {
    var answer = ProbeAnswer()
    (answer.collector, answer.versions) = ("prism-collector \(PrismVersion.current)", Self.packetVersions)
    answer.time = Int(time.unixMilliseconds)
    answer.token = await access.verdict(on: request)
    if isSigned {
      answer.key = .ok
    } else if answer.token == .ok || answer.token == .notAsked {
      answer.key = hasKey ? .wrong : .unknown
    }
    let allowed = isSigned ? options.keyRules[question.keyID]?.namespaces : nil
    answer.refusedNamespaces = question.namespaces.filter { NamespaceName($0) == nil || allowed?.contains($0) == false }
    return answer
  }
}
