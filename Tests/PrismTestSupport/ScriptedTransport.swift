public import PrismEngine
import Synchronization

/// Answers POSTs as a test says, and remembers them.
public final class ScriptedTransport: Transport {
  public typealias Script = @Sendable (UploadRequest) async -> UploadAnswer

  private let script: Mutex<Script>
  private let posted = Mutex<[UploadRequest]>([])

  public init(_ script: @escaping Script = ScriptedTransport.accept) { self.script = Mutex(script) }

  public func set(_ script: @escaping Script) { self.script.withLock { $0 = script } }
  public var requests: [UploadRequest] { posted.withLock { $0 } }

  public func post(_ request: UploadRequest) async -> UploadAnswer {
    posted.withLock { $0.append(request) }
    let script = script.withLock { $0 }
    return await script(request)
  }

  /// With the receipt that is due.
  public static let accept: Script = { request in
    answer(200, ["prism-receipt": request.header("Prism-Packet-Id") ?? ""], to: request)
  }

  public static func answer(
    _ status: Int, _ headers: [String: String] = [:], body: String = "", to request: UploadRequest
  ) -> UploadAnswer {
    UploadAnswer(
      outcome: .response(status: status, headers: headers, body: Array(body.utf8)), mayHaveLeft: true,
      bytesSent: request.body.count + 500, bytesReceived: 100, duration: .milliseconds(1))
  }

  public static func failure(_ failure: UploadAnswer.Failure, mayHaveLeft: Bool) -> UploadAnswer {
    UploadAnswer(
      outcome: .failure(failure, detail: "scripted"), mayHaveLeft: mayHaveLeft, bytesSent: 0, bytesReceived: 0,
      duration: .milliseconds(1))
  }
}

extension UploadRequest {
  public func header(_ name: String) -> String? { headers.first { $0.name == name }?.value }
}
