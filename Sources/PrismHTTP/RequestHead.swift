import CMicroHTTPD

/// The head of a request, copied out of libmicrohttpd's memory.
struct RequestHead {
  var request: HTTPRequest
  var isMethodKnown: Bool

  init(_ connection: OpaquePointer, method: String, path: String) {
    let known = HTTPRequest.Method(rawValue: method == "HEAD" ? "GET" : method)
    isMethodKnown = known != nil
    request = HTTPRequest(
      method: known ?? .get, path: path,
      query: Self.values(connection, .GET_ARGUMENT_KIND),
      headers: Self.values(connection, .HEADER_KIND).map { ($0.name.lowercased(), $0.value) },
      peer: HTTPPeer(prism_http_peer(connection)), socket: prism_http_socket(connection))
  }

  /// nil for a chunked body, whose length is known at its end. An invalid number counts as the largest.
  var bodyBytes: Int? {
    request.header("content-length").map { Int($0) ?? .max }
  }

  var expectsContinue: Bool {
    request.header("expect") != nil
  }

  private static func values(_ connection: OpaquePointer, _ kind: MHD_ValueKind) -> [(name: String, value: String)] {
    var values: [(name: String, value: String)] = []
    withUnsafeMutablePointer(to: &values) { pointer in
      _ = MHD_get_connection_values(
        connection, kind,
        { context, _, name, value in
          let values = context?.assumingMemoryBound(to: [(name: String, value: String)].self)
          if let name { values?.pointee.append((String(cString: name), value.map { String(cString: $0) } ?? "")) }
          return .YES
        }, pointer)
    }
    return values
  }
}
