import CMicroHTTPD
import Glibc
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
      peer: HTTPPeer(prism_http_peer(connection)))
  }

  /// nil for a chunked body, whose length is known at its end. An invalid number counts as the largest.
  var bodyBytes: Int? {
    request.header("content-length").map { Int($0) ?? .max }
  }

  /// Behind a proxy of `trusted` the peer is the last address of `X-Forwarded-For` that is not trusted, and TLS is what
  /// `X-Forwarded-Proto` says.
  mutating func resolvePeer(trusted: [NetworkRange]) {
    guard !trusted.isEmpty else { return }
    request.isForwardedSecurely =
      request.headers("x-forwarded-proto") == ["https"] && trusted.contains { $0.contains(request.peer.address) }
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

/// The bytes of a request's head, as libmicrohttpd left them in memory: ends of lines and signs between two parts are NUL bytes
/// there now. The parts lie side by side only if the head has the form of RFC 9112. NUL bytes, folded lines, lines
/// without CR LF and more than one space leave other bytes between them: servers differ in how they read those.
struct RawHead {
  let method: UnsafePointer<CChar>
  let path: UnsafePointer<CChar>
  let version: UnsafePointer<CChar>
  /// From the method to the empty line, both included.
  let byteCount: Int

  /// - Parameter target: as it was before libmicrohttpd decoded it.
  /// - Returns: what is wrong; nil: nothing is.
  func fault(of connection: OpaquePointer, _ target: RequestTarget) -> String? {
    guard let lines = Self.versions.contains(String(cString: version)) ? version + 8 : nil else {
      return "the request line must be METHOD TARGET HTTP/1.1"
    }
    guard target.isSound, path == method + strlen(method) + 1, version == path + target.byteCount + 1 else {
      return "the request line has a control character, or not one space between its parts"
    }
    var cursor = HeadCursor(lines)
    withUnsafeMutablePointer(to: &cursor) { pointer in
      _ = MHD_get_connection_values(
        connection, .HEADER_KIND,
        { context, _, name, value in
          context?.assumingMemoryBound(to: HeadCursor.self).pointee.pass(name, value) == true ? .YES : .NO
        }, pointer)
    }
    guard cursor.passEnd(), cursor.passEnd(), cursor.place == method + byteCount else {
      return "a header line is folded, holds a control character, does not end with CR LF, or is no NAME: VALUE"
    }
    return nil
  }

  private static let versions = ["HTTP/1.1", "HTTP/1.0"]
}

/// Walks over the lines of a head.
struct HeadCursor {
  private(set) var place: UnsafePointer<CChar>
  private(set) var isSound = true

  /// - Parameter place: the end of the request line.
  init(_ place: UnsafePointer<CChar>) { self.place = place }

  mutating func passEnd() -> Bool {
    guard isSound, let next = Self.afterEnd(place, Self.lineFeedsStay) else { return false }
    place = next
    return true
  }

  /// Of the library that is there.
  private static let lineFeedsStay = !String(cString: MHD_get_version()).hasPrefix("0.")

  /// The place behind a line's end; nil: this is no end. libmicrohttpd 0.9 makes both of its bytes NUL, so others are no end there.
  /// - Parameter lineFeedsStay: 1.0 makes only the first one of blanks, CR and LF NUL, and the empty line stays as it came.
  static func afterEnd(_ place: UnsafePointer<CChar>, _ lineFeedsStay: Bool) -> UnsafePointer<CChar>? {
    if place[0] == 0, place[1] == 0 { return place + 2 }
    guard lineFeedsStay else { return nil }
    if place[0] == 0, place[1] == lineFeed { return place + 2 }
    var end = place[0] == 0 ? place + 1 : place
    while end > place, blanks.contains(end[0]) { end += 1 }
    return end[0] == carriageReturn && end[1] == lineFeed ? end + 2 : nil
  }

  private static let lineFeed = CChar(UInt8(ascii: "\n"))
  private static let carriageReturn = CChar(UInt8(ascii: "\r"))
  private static let blanks = [CChar(UInt8(ascii: " ")), CChar(UInt8(ascii: "\t"))]

  /// - Returns: false: the header's name is not at the start of the line, or it holds what no header may.
  mutating func pass(_ name: UnsafePointer<CChar>?, _ value: UnsafePointer<CChar>?) -> Bool {
    isSound = passEnd() && name == place && passText(of: name, value)
    return isSound
  }

  private mutating func passText(of name: UnsafePointer<CChar>?, _ value: UnsafePointer<CChar>?) -> Bool {
    guard let name, let value, name[0] != 0, Self.holds(name, only: \.isHTTPToken) else { return false }
    // libmicrohttpd skips blanks in front of the value.
    let blanks = UnsafeRawBufferPointer(start: name + strlen(name) + 1, count: value - (name + strlen(name) + 1))
    guard blanks.allSatisfy({ $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }) else { return false }
    place = value + strlen(value)
    return Self.holds(value) { byte in byte >= UInt8(ascii: " ") && byte != Self.delete || byte == UInt8(ascii: "\t") }
  }

  private static let delete: UInt8 = 0x7F

  private static func holds(_ text: UnsafePointer<CChar>, only isAllowed: (UInt8) -> Bool) -> Bool {
    UnsafeRawBufferPointer(start: text, count: strlen(text)).allSatisfy(isAllowed)
  }
}

/// The target of a request before libmicrohttpd decodes it. It is kept in the slot of a request that has no `Exchange` yet, as
/// an odd number, which no pointer is.
struct RequestTarget {
  private let bits: UInt

  init(_ text: UnsafePointer<CChar>) {
    let bytes = UnsafeRawBufferPointer(start: text, count: strlen(text))
    let isSound = strstr(text, "%00") == nil && bytes.allSatisfy { $0 > UInt8(ascii: " ") && $0 != 0x7F }
    bits = UInt(bytes.count) << 2 | (isSound ? 2 : 0) | 1
  }

  /// - Returns: nil if the slot holds an `Exchange`.
  init?(slot: UnsafeMutableRawPointer) {
    bits = UInt(bitPattern: slot)
    if bits & 1 == 0 { return nil }
  }

  var slot: UnsafeMutableRawPointer? { UnsafeMutableRawPointer(bitPattern: bits) }
  var byteCount: Int { Int(bits >> 2) }
  /// It holds no control character and no space, and no NUL when it is decoded.
  var isSound: Bool { bits & 2 != 0 }
}
