import PrismBase
import PrismConfig
import PrismPacket
import PrismProtocol

/// Asks the receiver of a namespace for its dictionary.
struct DictionaryFetch: Sendable {
  /// Bytes that a question costs on a metered network at most. They are booked before it begins.
  static let bytesMax = DictionaryAnswer.bodyBytesMax + 4096

  struct Outcome: Sendable {
    /// nil: there is no dictionary, or no answer that proves to be one.
    var dictionary: CompressionDictionary?
    /// On the wire, headers included.
    var bytes: Int
  }

  let transport: any Transport
  let time: any TimeSource
  let random: Randomness
  let log: Logger

  func ask(_ seal: PacketSeal, _ configuration: NamespaceConfiguration) async -> Outcome {
    var random = random
    let id = PacketID(unixMilliseconds: time.unixMilliseconds, using: &random)
    let question = DictionaryQuestion(
      deviceID: seal.deviceID, namespace: configuration.name, id: id, cipher: seal.cipher, keyID: seal.keyID)
    let answer = await transport.post(Self.request(question, configuration))
    var outcome = Outcome(bytes: answer.bytesSent + answer.bytesReceived)
    var fault: String?
    switch answer.outcome {
    case .response(404, _, _): break
    case .response(200, let headers, let body):
      do throws(PacketError) {
        let answer = DictionaryAnswer(body: body, mac: headers["prism-mac"])
        outcome.dictionary = try answer.dictionary(for: question, key: seal.key)
      } catch { fault = "the answer is no dictionary for this device: \(error.rawValue)" }
    case .response(let status, _, _): fault = "status \(status)"
    case .failure(let failure, let detail): fault = "\(failure.rawValue): \(detail.cut(atBytes: 200))"
    }
    tell(fault, of: configuration.name)
    return outcome
  }

  private func tell(_ cause: String?, of namespace: NamespaceName) {
    let key = "dictionary.\(namespace)"
    guard let cause else {
      return log.faultEnded(
        key, "the collector answers questions for a dictionary again", ["namespace": namespace.text])
    }
    log.fault(
      key, "the dictionary of the namespace can't be had; packets go without",
      ["namespace": namespace.text, "cause": cause])
  }

  private static func request(_ question: DictionaryQuestion, _ configuration: NamespaceConfiguration)
    -> TransferRequest
  {
    let base = configuration.url.map { CollectorAddress($0).base } ?? ""
    var request = TransferRequest(
      url: base + DictionaryQuestion.path + "?namespace=\(question.namespace)",
      headers: question.fields + configuration.authorization, body: [], timeout: .seconds(120))
    (request.method, request.tls) = (.get, configuration.tls)
    request.answerBytesKept = DictionaryAnswer.bodyBytesMax
    return request
  }
}
