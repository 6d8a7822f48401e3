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
      case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x5F, 0x7E: [byte]
      default: [0x25, digits[Int(byte >> 4)], digits[Int(byte & 15)]]
      }
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}
