import PrismBase

/// Puts an HTTP answer together from what arrives, within bounds: the other side may send without end.
///
/// Interim answers (1xx) are skipped, and trailers are not headers. A header given more than once is joined by ", "
/// (RFC 9110, 5.2), and an obsolete folded line continues the one before it.
struct AnswerCollector {
  /// The bytes of the body that are kept; the rest is read and dropped.
  let bodyBytesKept: Int
  let bodyBytesMax: Int
  /// Over all answers of one request, interim ones and trailers included.
  static let headerBytesMax = 64 * 1024
  static let headerLinesMax = 100

  /// Of the last status line; nil before one came.
  private(set) var status: Int?
  /// Names in lower case.
  private(set) var headers: [String: String] = [:]
  private(set) var body: [UInt8] = []
  /// The empty line that ends the head has come. curl takes a connection closed within the head for a whole answer.
  private(set) var isHeadWhole = false
  /// Why no more is taken: the transfer is to be aborted.
  private(set) var overrun: String?

  private var headerBytes = 0, headerLines = 0, bodyBytes = 0
  private var lastName: String?

  init(bodyBytesKept: Int, bodyBytesMax: Int) {
    (self.bodyBytesKept, self.bodyBytesMax) = (bodyBytesKept, bodyBytesMax)
  }

  /// - Parameter line: one line of the head, with its line end.
  /// - Returns: false when the bounds are passed.
  mutating func take(headerLine line: UnsafeRawBufferPointer) -> Bool {
    headerBytes += line.count
    headerLines += 1
    guard headerBytes <= Self.headerBytesMax, headerLines <= Self.headerLinesMax else {
      overrun = "over \(Self.headerBytesMax) bytes or \(Self.headerLinesMax) lines of headers"
      return false
    }
    let text = line.prefix { $0 != UInt8(ascii: "\r") && $0 != UInt8(ascii: "\n") }
    if text.starts(with: "HTTP/".utf8) {
      beginAnswer(statusLine: text)
    } else if text.isEmpty {
      isHeadWhole = true
    } else if !isHeadWhole {
      takeField(text)
    }
    return true
  }

  /// - Returns: false when the bounds are passed.
  mutating func take(body bytes: UnsafeRawBufferPointer) -> Bool {
    guard count(bytes.count) else { return false }
    body += bytes.prefix(bodyBytesKept - body.count)
    return true
  }

  /// The same of bytes that go to a file. - Parameter fault: why they could not; nil: they are there.
  mutating func take(filed bytes: Int, fault: String?) -> Bool {
    if let fault {
      overrun = fault
      return false
    }
    return count(bytes)
  }

  private mutating func count(_ bytes: Int) -> Bool {
    bodyBytes += bytes
    if bodyBytes <= bodyBytesMax { return true }
    overrun = "over \(bodyBytesMax) bytes of body"
    return false
  }

  private mutating func beginAnswer(statusLine: Slice<UnsafeRawBufferPointer>) {
    let code = statusLine.drop { $0 != UInt8(ascii: " ") }.dropFirst().prefix(while: \.isASCIIDigit)
    status = Int(String(decoding: code, as: UTF8.self))
    headers = [:]
    lastName = nil
    isHeadWhole = false
  }

  private mutating func takeField(_ line: Slice<UnsafeRawBufferPointer>) {
    if line.first == UInt8(ascii: " ") || line.first == UInt8(ascii: "\t") {
      if let lastName { headers[lastName, default: ""] += " " + Self.trimmed(line) }
      return
    }
    guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else { return }
    let name = Self.trimmed(line[..<colon]).lowercased()
    let value = Self.trimmed(line[line.index(after: colon)...])
    headers[name] = headers[name].map { $0 + ", " + value } ?? value
    lastName = name
  }

  private static func trimmed(_ bytes: Slice<UnsafeRawBufferPointer>) -> String {
    String(decoding: bytes, as: UTF8.self).trimmed
  }
}
