import PrismHTTP
import PrismPacket
import PrismProtocol

extension Collector {
  /// `GET /prism/dictionary`: the dictionary of a namespace, encrypted with the key of the device that asks.
  func dictionary(_ request: HTTPRequest) async throws(CollectorRefusal) -> HTTPResponse {
    do throws(CollectorRefusal) {
      try await access.checkSender(request)
      let question = try DictionaryQuestion(request)
      try devices.check(question.deviceID)
      try await devices.standings.check(question.deviceID)
      let response = try await openers.answer(to: question)
      counts.count(.dictionaries, "served")
      return response
    } catch {
      counts.count(.dictionaries, error.status == 404 ? "none" : "refused_\(error.status)")
      throw error
    }
  }
}

extension DictionaryQuestion {
  /// - Throws: 400 naming the header or the parameter that is missing or wrong.
  fileprivate init(_ request: HTTPRequest) throws(CollectorRefusal) {
    try request.checkParameters(["namespace"])
    do throws(PacketHeaderFault) {
      try self.init(namespace: request.parameter("namespace")) { request.header($0) }
    } catch { throw CollectorRefusal(400, code: .header, error.description) }
  }
}

extension PacketOpeners {
  fileprivate func answer(to question: DictionaryQuestion) async throws(CollectorRefusal) -> HTTPResponse {
    let key = try await key(question.keyID, of: question.deviceID, question.namespace, question.cipher)
    guard let dictionary = try await dictionaries?.newest(of: question.namespace) else {
      throw CollectorRefusal(
        404, "there is no dictionary of this namespace yet; it is made of its packets", retryAfterSeconds: 3600)
    }
    let answer: DictionaryAnswer
    do throws(PacketError) { answer = try DictionaryAnswer(dictionary, to: question, key: key) } catch {
      throw CollectorRefusal(503, "the dictionary could not be encrypted; try again", retryAfterSeconds: 5)
    }
    var headers = [
      (name: "Content-Type", value: DictionaryQuestion.contentType), ("Prism-Dictionary", String(dictionary.id)),
    ]
    if let mac = answer.mac { headers.append(("Prism-Mac", mac)) }
    return HTTPResponse(status: 200, headers: headers, body: answer.body)
  }

  /// Of packets' answers: the dictionary that there is, so that who has another one asks.
  func dictionaryHeaders(_ namespace: NamespaceName) -> [(name: String, value: String)] {
    dictionaries?.announced(of: namespace).map { [("Prism-Dictionary", String($0))] } ?? []
  }
}
