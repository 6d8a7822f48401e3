import PrismHTTP
import PrismProtocol

extension CollectorRefusal {
  private static let titles = [
    400: "Bad request", 401: "Not signed in", 403: "Forbidden", 404: "Not found", 405: "Method not allowed",
    409: "Conflict", 412: "Precondition failed", 413: "Too large", 415: "Wrong content type", 422: "Not taken",
    429: "Too many requests", 503: "Not available",
  ]

  /// The refusal as problem details (RFC 9457), for the API's clients.
  var problem: HTTPResponse {
    let body: JSONValue = [
      "type": "about:blank", "title": .string(Self.titles[status] ?? "Error"), "status": .int(status),
      "detail": .string(message),
    ]
    return HTTPResponse(
      status: status, contentType: "application/problem+json", headers: headers, text: body.text + "\n")
  }
}
