import PrismBase
import PrismHTTP
import PrismProtocol

/// The head of one HTTP/1.1 request, strictly read (RFC 9112): what could be understood in two ways is refused.
struct HTTPHead: Equatable {
  enum Body: Equatable {
    case none
    case length(Int)
    case chunked
  }

  /// A head that is refused, and with which status.
  struct Fault: Error, Equatable {
    let status: Int
    let message: String
    /// Of 405: the methods that the path takes.
    var allow: String?
    init(_ status: Int, _ message: String) { (self.status, self.message) = (status, message) }
    init(_ miss: RouteMiss) { (status, message, allow) = (miss.status, miss.message, miss.allow) }
  }

  var method: String
  /// Without the query, and without scheme and host, as it was written.
  var path: String
  var body = Body.none
  var isKeptAlive: Bool
  var expectsContinue = false
  /// Empty if it was left out.
  var contentType = ""
  /// In lower case; `identity` if it was left out.
  var contentEncoding = "identity"
  /// Of the header `Host`, or empty.
  var host = ""
  /// Behind the `?`, as it was written.
  var query = ""
  /// Of the headers `If-Match` and `If-None-Match`; nil if they were left out.
  var ifMatch: String?, ifNoneMatch: String?

  static let bytesMax = 16 * 1024

  /// Whether a line is meant to be the first of an HTTP request, sound or not: METHOD TARGET HTTP/…
  static func isRequestLine(_ line: ArraySlice<UInt8>) -> Bool {
    let version = line.split(separator: UInt8(ascii: " ")).last
    return version?.starts(with: "HTTP/".utf8) == true
  }

  /// - Parameter text: from the request line to the empty line, both included.
  init(_ text: ArraySlice<UInt8>) throws(Fault) {
    var lines = try Self.lines(text)
    let words = lines.removeFirst().split(separator: " ", omittingEmptySubsequences: false)
    guard words.count == 3, !words[0].isEmpty, words[0].utf8.allSatisfy(\.isHTTPToken), !words[1].isEmpty else {
      throw Fault(400, "the request line must be METHOD TARGET HTTP/1.1")
    }
    guard words[2] == "HTTP/1.1" || words[2] == "HTTP/1.0" else { throw Fault(505, "only HTTP/1.1 is spoken here") }
    method = String(words[0])
    (path, query) = Self.path(words[1])
    isKeptAlive = words[2] == "HTTP/1.1"
    try read(lines, needsHost: isKeptAlive)
  }

  private static func lines(_ text: ArraySlice<UInt8>) throws(Fault) -> [String] {
    guard let whole = String(validating: text, as: UTF8.self) else { throw Fault(400, "the head is not UTF-8") }
    var lines: [String] = []
    var line = ""
    var scalars = whole.unicodeScalars.makeIterator()
    while let scalar = scalars.next() {
      switch scalar {
      case "\r":
        guard scalars.next() == "\n" else { throw Fault(400, "the head has a carriage return without a line feed") }
        lines.append(line)
        line = ""
      case _ where scalar < " " && scalar != "\t" || scalar.value == 0x7F:
        throw Fault(400, "the head has a control character")
      default: line.unicodeScalars.append(scalar)
      }
    }
    while lines.last?.isEmpty == true { lines.removeLast() }
    guard !lines.isEmpty else { throw Fault(400, "the head is empty") }
    return lines
  }

  private static func path(_ target: Substring) -> (path: String, query: String) {
    var rest = target
    if rest.hasPrefix("http://") {
      rest = rest.dropFirst("http://".count).drop { $0 != "/" }
    }
    let path = rest.prefix { $0 != "?" }
    return (String(path), String(rest[path.endIndex...].dropFirst()))
  }

  private mutating func read(_ lines: [String], needsHost: Bool) throws(Fault) {
    var (length, isChunked, hosts): (Int?, Bool, Int) = (nil, false, 0)
    for line in lines {
      let (name, value) = try Self.field(line)
      switch name {
      case "host": (hosts, host) = (hosts + 1, value)
      case "content-length":
        guard let bytes = Self.length(value), length == nil else {
          throw Fault(400, "there must be one Content-Length, a whole number")
        }
        length = bytes
      case "transfer-encoding":
        guard value.lowercased() == "chunked", !isChunked else {
          throw Fault(501, "the only Transfer-Encoding is chunked")
        }
        isChunked = true
      case "content-encoding": contentEncoding = value.lowercased()
      case "content-type": contentType = value
      case "if-match": ifMatch = value
      case "if-none-match": ifNoneMatch = value
      case "connection": readConnection(value)
      case "expect":
        guard value.lowercased() == "100-continue" else { throw Fault(417, "the only Expect is 100-continue") }
        expectsContinue = true
      default: break
      }
    }
    guard hosts == 1 || (hosts == 0 && !needsHost) else { throw Fault(400, "one Host header is needed") }
    guard length == nil || !isChunked else { throw Fault(400, "give Content-Length or Transfer-Encoding, not both") }
    body = isChunked ? .chunked : length.map { $0 > 0 ? .length($0) : .none } ?? .none
  }

  private mutating func readConnection(_ value: String) {
    let options = value.lowercased().split { $0 == "," || $0 == " " || $0 == "\t" }
    if options.contains("close") { isKeptAlive = false }
  }

  private static func field(_ line: String) throws(Fault) -> (name: String, value: String) {
    guard let colon = line.firstIndex(of: ":"), colon > line.startIndex,
      line[..<colon].utf8.allSatisfy(\.isHTTPToken)
    else { throw Fault(400, "a header must be NAME: VALUE") }
    return (line[..<colon].lowercased(), String(line[line.index(after: colon)...]).trimmed)
  }

  private static func length(_ value: String) -> Int? {
    guard !value.isEmpty, value.utf8.allSatisfy(\.isASCIIDigit) else { return nil }
    return Int(value) ?? .max
  }
}

/// Takes a body in chunks apart (RFC 9112, 7.1); extensions and trailers are read over.
struct ChunkedBody: Equatable {
  private enum State: Equatable {
    case size, trailer, done
    case data(remaining: Int)
    case afterData
  }

  enum Fault: Error, Equatable { case malformed, tooLarge }

  static let lineBytesMax = 4096
  private var state = State.size
  /// A line as far as it came.
  private var line: [UInt8] = []

  var isDone: Bool { state == .done }
  var heldBytes: Int { line.count }

  /// Takes what it can from `chunk`, each byte once.
  /// - Parameter position: moved behind what was taken.
  mutating func consume(
    _ chunk: Span<UInt8>, _ position: inout Int, into body: inout [UInt8], bodyBytesMax: Int
  ) throws(Fault) {
    while position < chunk.count, !isDone {
      if case .data(let remaining) = state {
        let end = min(chunk.count, position + remaining)
        body.append(copying: chunk, position..<end)
        state = end - position == remaining ? .afterData : .data(remaining: remaining - (end - position))
        position = end
      } else if try takeLine(chunk, &position) {
        try endLine(bodyBytesMax - body.count)
      }
    }
  }

  private mutating func takeLine(_ chunk: Span<UInt8>, _ position: inout Int) throws(Fault) -> Bool {
    let end = RequestFramer.lineFeed(chunk, from: position)
    let piece = position..<(end.map { $0 + 1 } ?? chunk.count)
    guard line.count + piece.count <= Self.lineBytesMax else { throw .malformed }
    line.append(copying: chunk, piece)
    position = piece.upperBound
    return end != nil
  }

  private mutating func endLine(_ room: Int) throws(Fault) {
    guard line.count >= 2, line[line.count - 2] == UInt8(ascii: "\r") else { throw .malformed }
    let text = line[..<(line.count - 2)]
    switch state {
    case .size:
      let size = try Self.size(text)
      guard size <= room else { throw .tooLarge }
      state = size == 0 ? .trailer : .data(remaining: size)
    case .afterData:
      guard text.isEmpty else { throw .malformed }
      state = .size
    case .trailer: if text.isEmpty { state = .done }
    case .data, .done: break
    }
    line.removeAll(keepingCapacity: true)
  }

  /// Hexadecimal digits, then possibly an extension.
  private static func size(_ line: ArraySlice<UInt8>) throws(Fault) -> Int {
    let digits = line.prefix { $0 != UInt8(ascii: ";") && $0 != UInt8(ascii: " ") && $0 != UInt8(ascii: "\t") }
    guard 1...8 ~= digits.count, let size = Int(String(decoding: digits, as: UTF8.self), radix: 16), size >= 0,
      digits.first != UInt8(ascii: "+"), digits.first != UInt8(ascii: "-")
    else { throw .malformed }
    return size
  }
}
