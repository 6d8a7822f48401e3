import PrismHTTP
import PrismProtocol

/// Why a POST is not taken: the answer's status, and what the sender's operator reads.
struct CollectorRefusal: Error, Sendable, Equatable {
  let status: Int
  let message: String
  var retryAfterSeconds: Int?

  init(_ status: Int, _ message: String, retryAfterSeconds: Int? = nil) {
    (self.status, self.message, self.retryAfterSeconds) = (status, message, retryAfterSeconds)
  }

  var response: HTTPResponse {
    let retry = retryAfterSeconds.map { [(name: "Retry-After", value: String($0))] } ?? []
    let body: JSONValue = ["message": .string(message)]
    return HTTPResponse(status: status, contentType: "application/json", headers: retry, text: body.text + "\n")
  }
}
