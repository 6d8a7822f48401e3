import PrismHTTP
import PrismProtocol

/// One path of the API, and who may ask it. `docs/api.yaml` documents each; a test holds them together.
struct PageRoute: Sendable {
  typealias Handler = @Sendable (PageAPI, PageRequest) async throws(CollectorRefusal) -> HTTPResponse

  enum Access: Sendable {
    case everybody, viewer
    /// Changes something. A session must bring its change token.
    case `operator`
  }

  let method: HTTPRequest.Method
  /// Below `/api/v1`; a part in braces takes any text without a slash, but `{record}` at the end takes any text.
  let path: String
  let access: Access
  /// Of the query; another one is answered with 400.
  let parameters: [String]
  let handler: Handler

  init(
    _ method: HTTPRequest.Method, _ path: String, _ access: Access = .viewer, _ parameters: [String] = [],
    _ handler: @escaping Handler
  ) {
    (self.method, self.path, self.access, self.parameters, self.handler) = (method, path, access, parameters, handler)
  }

  /// - Returns: the values of the parts in braces; nil: another path.
  func match(_ path: some StringProtocol) -> [String]? {
    let own = self.path.split(separator: "/")
    let isOpen = own.last == "{record}"
    let given = path.dropFirst().split(
      separator: "/", maxSplits: isOpen ? own.count - 1 : Int.max, omittingEmptySubsequences: !isOpen)
    guard own.count == given.count, given.last?.isEmpty != true else { return nil }
    var values: [String] = []
    for (part, value) in zip(own, given) {
      if part.hasPrefix("{") { values.append(String(value)) } else if part != value { return nil }
    }
    return values
  }
}
