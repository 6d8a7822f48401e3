public import PrismPacket
public import PrismProtocol
import Synchronization

/// Answers POSTs as a test says, and remembers them.
public final class ScriptedTransport: Transport {
  public typealias Script = @Sendable (TransferRequest) async -> PostAnswer

  private let script: Mutex<Script>
  private let posted = Mutex<[TransferRequest]>([])
  private let reached = Mutex<[TransferRequest]>([])

  public init(_ script: @escaping Script = ScriptedTransport.accept) { self.script = Mutex(script) }

  public func set(_ script: @escaping Script) { self.script.withLock { $0 = script } }
  public var requests: [TransferRequest] { posted.withLock { $0 } }
  /// Without those that the script says didn't leave.
  public var left: [TransferRequest] { reached.withLock { $0 } }

  public func post(_ request: TransferRequest) async -> PostAnswer {
    posted.withLock { $0.append(request) }
    let script = script.withLock { $0 }
    let answer = await script(request)
    if answer.mayHaveLeft { reached.withLock { $0.append(request) } }
    return answer
  }

  /// With the receipt that is due.
  public static let accept: Script = { request in answer(200, receipt(for: request), to: request) }

  /// The header that proves that a holder of `key` took the packet, or refused it with `status`; empty for a request that is
  /// no packet's.
  public static func receipt(
    for request: TransferRequest, body: String = "", refusal status: Int? = nil, key: Secret = DeliveryRig.key
  ) -> [String: String] {
    guard let headers = request.packetHeaders,
      let text = try? PacketReceipt(key: key, refusal: status).text(for: headers, answer: Array(body.utf8))
    else { return [:] }
    return [status == nil ? "prism-receipt" : "prism-verdict": text]
  }

  /// A refusal as the collector proves it.
  public static func refusal(_ status: Int, body: String = "", to request: TransferRequest) -> PostAnswer {
    answer(status, receipt(for: request, body: body, refusal: status), body: body, to: request)
  }

  public static func answer(
    _ status: Int, _ headers: [String: String] = [:], body: String = "", to request: TransferRequest
  ) -> PostAnswer {
    PostAnswer(
      outcome: .response(status: status, headers: headers, body: Array(body.utf8)), mayHaveLeft: true,
      bytesSent: request.body.count + 500, bytesReceived: 100, duration: .milliseconds(1))
  }

  /// The answer to the intent of a trigger, proved by `key`. Of a question that no holder of `key` asks: 403.
  public static func answer(
    _ leaves: Bool, toIntent request: TransferRequest, key: Secret = DeliveryRig.key
  ) -> PostAnswer {
    let question = IntentQuestion(controlJSON: (try? JSONValue(parsing: request.body)) ?? .null)
    var answer = IntentAnswer()
    answer.leaves = leaves
    let body = answer.controlJSON.text
    guard let code = try? ProbeCode(key: DeliveryRig.key, for: .intent),
      (try? code.ofQuestion(request.body)) == request.header("Prism-Mac"),
      let mac = try? ProbeCode(key: key, for: .intent).ofAnswer(Array(body.utf8), nonce: question.nonce)
    else { return Self.answer(403, to: request) }
    return Self.answer(200, ["prism-mac": mac], body: body, to: request)
  }

  public static func failure(_ failure: PostAnswer.Failure, mayHaveLeft: Bool) -> PostAnswer {
    PostAnswer(
      outcome: .failure(failure, detail: "scripted"), mayHaveLeft: mayHaveLeft, bytesSent: 0, bytesReceived: 0,
      duration: .milliseconds(1))
  }
}

extension TransferRequest {
  public func header(_ name: String) -> String? { headers.first { $0.name == name }?.value }

  /// nil: not those of a packet.
  public var packetHeaders: PacketHeaders? {
    guard let kind = RowKind.all.first(where: { url.hasSuffix($0.path) }) else { return nil }
    return try? PacketHeaders(kind: kind) { name in
      self.headers.filter { $0.name.lowercased() == name }.map(\.value)
    }
  }
}
