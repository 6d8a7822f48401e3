import CMicroHTTPD
import PrismBase

/// The head of a request, copied out of libmicrohttpd's memory.
struct RequestHead {
  var request: HTTPRequest
  var isMethodKnown: Bool
  private let isHTTP11: Bool

  init(_ connection: OpaquePointer, _ raw: RawHead) {
    let (method, path) = (String(cString: raw.method), String(cString: raw.path))
    isHTTP11 = String(cString: raw.version) == "HTTP/1.1"
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

  /// Behind a proxy of `trusted` the peer is the last address of `X-Forwarded-For` that is not trusted.
  mutating func resolvePeer(trusted: [NetworkRange]) {
    guard !trusted.isEmpty else { return }
    let hops = request.headers("x-forwarded-for").flatMap { $0.split(separator: ",") }
    for hop in hops.reversed() where trusted.contains(where: { $0.contains(request.peer.address) }) {
      guard let peer = HTTPPeer(forwarded: hop.filter { $0 != " " && $0 != "\t" }) else { return }
      request.peer = peer
    }
  }

  /// It has a body, and its length is not known.
  var isChunked: Bool { request.header("transfer-encoding") != nil }

  /// Why another server may read the request differently (RFC 9112, 6.3 and 11.2); nil: it can't.
  var fault: String? {
    if let name = Self.singles.first(where: { request.headers($0).count > 1 }) {
      return "the header \(name) is there twice"
    }
    guard let coding = request.header("transfer-encoding") else { return nil }
    if request.header("content-length") != nil { return "give Content-Length or Transfer-Encoding, not both" }
    return isHTTP11 && coding.lowercased() == "chunked" ? nil : "the only Transfer-Encoding is chunked, with HTTP/1.1"
  }

  /// Headers of which one server may believe the first, and another one the last.
  private static let singles = [
    "host", "content-length", "transfer-encoding", "content-type", "content-encoding", "authorization", "expect",
  ]

  /// The first parameter that is there twice and is not in `lists`; nil if there is no such parameter.
  func repeatedParameter(but lists: Set<String>) -> String? {
    var known: Set<String> = []
    return request.query.first { !known.insert($0.name).inserted && !lists.contains($0.name) }?.name
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
