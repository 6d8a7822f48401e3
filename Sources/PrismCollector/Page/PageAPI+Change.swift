import PrismHTTP
import PrismProtocol

// Bodies of changes.
extension PageAPI {
  private static let bodyBytesMax = 65_536

  /// The object that a change brings. - Throws: 400 for another body, and for a member that is not among `known`.
  static func body(_ request: PageRequest, known: [String]) throws(CollectorRefusal) -> JSONValue {
    // A form of another origin can't send this type without asking first.
    guard request.http.header("content-type")?.hasPrefix("application/json") == true else {
      throw CollectorRefusal(400, "send a change as application/json")
    }
    guard request.http.body.count <= bodyBytesMax, let body = try? JSONValue(parsing: request.http.body),
      let members = body.object
    else { throw CollectorRefusal(400, "the body must be an object of at most \(bodyBytesMax) bytes") }
    if let unknown = members.first(where: { !known.contains($0.key) }) {
      throw CollectorRefusal(
        400, "`\(unknown.key.prefix(64))` is no member here; there are \(known.joined(separator: ", "))")
    }
    return body
  }
}
