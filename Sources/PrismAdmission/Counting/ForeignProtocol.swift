import PrismBase
public import PrismProtocol

/// A protocol that a client speaks where it is not taken, recognized by its first bytes; the raw value is a metric's label. Pure.
public enum ForeignProtocol: String, CaseIterable, Sendable {
  case tls, http2, msgpack, syslog, statsd, http, lines, other

  /// The bytes that tell every protocol.
  public static let openingBytesMax = 24

  /// - Parameter opening: the beginning of what a client sends.
  /// - Returns: nil if no foreign protocol begins so, or not enough has come: a letter or `<` needs a line or `openingBytesMax`.
  public init?(_ opening: ArraySlice<UInt8>) {
    guard let first = opening.first else { return nil }
    let line = opening.prefix(256).prefix { $0 != UInt8(ascii: "\n") }
    let isWhole = line.count < opening.count || opening.count >= Self.openingBytesMax
    switch first {
    case 0x16: self = .tls
    case 0x80...0x9F, 0xDC...0xDF: self = .msgpack
    case UInt8(ascii: "<"), UInt8(ascii: "0")...UInt8(ascii: "9"):
      guard isWhole, Self.isSyslog(line) else { return nil }
      self = .syslog
    default:
      if opening.starts(with: "PRI * HTTP/2".utf8) {
        self = .http2
      } else if isWhole, Self.isStatsd(line) {
        self = .statsd
      } else {
        return nil
      }
    }
  }

  /// `<34>1 …` (RFC 5424), `<34>Oct 11 …` (RFC 3164), or either after its length (RFC 6587).
  private static func isSyslog(_ line: ArraySlice<UInt8>) -> Bool {
    var rest = line
    if rest.first != UInt8(ascii: "<") {
      let length = rest.prefix(while: \.isASCIIDigit)
      guard 1...6 ~= length.count, rest.dropFirst(length.count).first == UInt8(ascii: " ") else { return false }
      rest = rest.dropFirst(length.count + 1)
    }
    guard rest.first == UInt8(ascii: "<") else { return false }
    let priority = rest.dropFirst().prefix(while: \.isASCIIDigit)
    return 1...3 ~= priority.count && rest.dropFirst(1 + priority.count).first == UInt8(ascii: ">")
  }

  /// `NAME:VALUE|TYPE`.
  private static func isStatsd(_ line: ArraySlice<UInt8>) -> Bool {
    guard let colon = line.firstIndex(of: UInt8(ascii: ":")), colon > line.startIndex,
      let bar = line[colon...].firstIndex(of: UInt8(ascii: "|")), bar > colon + 1
    else { return false }
    let isName = line[..<colon].allSatisfy {
      $0 > UInt8(ascii: " ") && $0 <= UInt8(ascii: "~") && $0 != UInt8(ascii: "{") && $0 != UInt8(ascii: "\"")
    }
    let isValue = line[(colon + 1)..<bar].allSatisfy { $0.isASCIIDigit || "+-.eE".utf8.contains($0) }
    return isName && isValue && line[(bar + 1)...].first.map { "cgmhsd".utf8.contains($0) } == true
  }

  /// The protocol's name for people.
  public var title: String {
    switch self {
    case .tls: "TLS"
    case .http2: "HTTP/2 or gRPC"
    case .msgpack: "msgpack (Fluent's forward protocol?)"
    case .syslog: "syslog"
    case .statsd: "statsd"
    case .http: "HTTP"
    case .lines: "lines"
    case .other: "another protocol"
    }
  }

  /// The answer: the protocol that was met, those that are allowed, and what to do. It has nothing of the input.
  public var refusal: Refusal { Refusal(.badRequest, "this is \(title); \(allowed)") }

  private var allowed: String {
    let here = "taken here are lines of JSON and HTTP/1.1"
    return switch self {
    case .tls: "\(here), without TLS: the socket does not leave this machine"
    case .http2: "\(here); export OTLP over HTTP with protobuf, not over gRPC"
    case .msgpack: "\(here); send to forward.socket or forward.listen of prismd.yaml"
    case .syslog: "\(here); send to syslog.socket or syslog.listen of prismd.yaml"
    case .statsd: "\(here); send to statsd.socket or statsd.listen of prismd.yaml"
    case .http, .lines, .other: "only the protocol of this address is taken here"
    }
  }
}
