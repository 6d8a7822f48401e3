/// The paths of a server. All of its requests find their route here, or get 404 or 405, by one rule.
public struct RouteTable<Route: Sendable>: Sendable {
  /// A method of a path, and what is there.
  public struct Row: Sendable {
    fileprivate let method: HTTPRequest.Method, path: String, parts: [Substring], route: Route

    /// - Parameter path: a part in braces takes any text without a slash, but an empty one; with a plus sign, at the end, it
    ///   takes any rest.
    public init(_ method: HTTPRequest.Method, _ path: String, _ route: Route) {
      (self.method, self.path, self.route) = (method, path, route)
      parts = RouteTable.parts(path)
    }

    /// - Returns: the texts of the parts in braces; nil: another path.
    fileprivate func texts(in given: [Substring]) -> [String]? {
      let isOpen = parts.last?.hasPrefix("{+") == true
      guard isOpen ? given.count >= parts.count : given.count == parts.count else { return nil }
      let rest = isOpen ? [given[(parts.count - 1)...].joined(separator: "/")[...]] : []
      var texts: [String] = []
      for (part, text) in zip(parts, given.prefix(parts.count - rest.count) + rest) {
        let isTaken = part.hasPrefix("{+") || part.hasPrefix("{") && !text.isEmpty
        if isTaken { texts.append(String(text)) } else if part != text { return nil }
      }
      return texts
    }
  }

  private let rows: [Row]
  private let hint: String

  /// - Parameters:
  ///   - rows: of two that take a request, the first one has it.
  ///   - hint: of 404, where the list of all rows is not the right one.
  public init(_ rows: [Row], hint: String? = nil) {
    self.rows = rows
    self.hint = hint ?? "there are " + rows.map { "\($0.method.rawValue) \($0.path)" }.joined(separator: ", ")
  }

  /// - Parameter method: nil: one that no path takes.
  /// - Returns: the route, with the texts of its path's parts in braces.
  public func find(
    _ method: HTTPRequest.Method?, _ path: String
  ) -> Result<(route: Route, parts: [String]), RouteMiss> {
    let given = Self.parts(path)
    var allowed: [HTTPRequest.Method] = []
    for row in rows {
      guard let texts = row.texts(in: given) else { continue }
      if row.method == method { return .success((row.route, texts)) }
      if !allowed.contains(row.method) { allowed.append(row.method) }
    }
    guard !allowed.isEmpty else { return .failure(RouteMiss(404, "there is nothing at this path; \(hint)")) }
    let allow = allowed.map(\.rawValue).joined(separator: ", ")
    return .failure(
      RouteMiss(405, "\(method?.rawValue ?? "this method") is not for this path, but \(allow)", allow: allow))
  }

  private static func parts(_ path: String) -> [Substring] {
    path.split(separator: "/", omittingEmptySubsequences: false)
  }
}

/// Why a request has no route.
public struct RouteMiss: Error, Sendable, Equatable {
  /// 404, or 405.
  public let status: Int
  public let message: String
  /// Of 405: the header `Allow`, the methods that the path takes.
  public let allow: String?

  fileprivate init(_ status: Int, _ message: String, allow: String? = nil) {
    (self.status, self.message, self.allow) = (status, message, allow)
  }

  /// In plain text.
  public var response: HTTPResponse {
    .refusal(status, message, headers: allow.map { [(name: "Allow", value: $0)] } ?? [])
  }
}
