import PrismProtocol

/// The question to the server of remote configuration, and the device's state with it (docs/remote-configuration.md).
struct RemoteQuestion: Sendable, Equatable {
  /// The part of a fault that the server gets; status and log have the whole.
  static let reasonBytesMax = 500

  var deviceID: String
  /// What changed since? nil: everything.
  var updateTime: Int64?
  /// Of what is in force.
  var version: Int64?
  var lastApplied: Int64?
  var lastFailed: RemoteState.Failed?

  func url(_ base: String) -> String {
    let failed = lastFailed.map { $0.number.map { String($0) } ?? "unreadable" }
    let parameters: [(String, String?)] = [
      ("deviceId", deviceID), ("updateTime", updateTime.map { String($0) }), ("version", version.map { String($0) }),
      ("lastApplied", lastApplied.map { String($0) }), ("lastFailed", failed),
      ("reason", lastFailed?.reason.cut(atBytes: Self.reasonBytesMax)),
    ]
    let query = parameters.compactMap { name, value in value.map { "\(name)=\($0.percentEncoded)" } }
    return base + "?" + query.joined(separator: "&")
  }
}

extension String {
  /// All but the unreserved characters of RFC 3986, section 2.3, escaped.
  fileprivate var percentEncoded: String {
    let digits = Array("0123456789ABCDEF".utf8)
    let bytes = utf8.flatMap { byte -> [UInt8] in
      switch byte {
      case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
        UInt8(ascii: "~"):
        [byte]
      default: [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
      }
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}
