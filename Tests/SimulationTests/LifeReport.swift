import PrismBase
import PrismProtocol

/// A report of the simulation: everything about it follows from its number, so that one that is damaged, mixed up or
/// made up is seen at the collector.
struct LifeReport {
  /// The users that report in the simulation.
  static let users: [UInt32] = [1000, 1001]

  let number: Int
  let namespace: NamespaceName
  /// In `users`.
  let user: Int
  let type: String
  let hasPayload: Bool
  /// The client's own; nil: the daemon makes one.
  let clientID: String?

  /// The collector can't take it, alone or with others.
  var isPoison: Bool { Self.isPoison(number) }
  static func isPoison(_ number: Int) -> Bool { number % 211 == 17 }

  /// The members of its meta.
  static func body(_ number: Int) -> String {
    let letter = String(UnicodeScalar(UInt8(97 + number % 26)))
    return #""n":\#(number),"pad":"\#(String(repeating: letter, count: number * 37 % 260))""#
  }

  static func payload(_ number: Int) -> [UInt8] {
    (0..<(number * 53 % 600)).map { UInt8(truncatingIfNeeded: number &* 31 &+ $0) }
  }

  /// As a client writes it; every other payload in base64.
  var request: [UInt8] {
    var head = #"{"namespace":"\#(namespace)","type":"\#(type)","meta":{\#(Self.body(number))}"#
    if let clientID { head += #","reportId":"\#(clientID)""# }
    guard hasPayload else { return Array((head + "}\n").utf8) }
    let payload = Self.payload(number)
    if number.isMultiple(of: 2) { return Array((head + #","payload":"\#(Base64.encode(payload))"}"# + "\n").utf8) }
    return Array((head + #","payloadBytes":\#(payload.count)}"# + "\n").utf8) + payload
  }
}

/// One report as the collector finds it in a packet.
struct ArrivedReport {
  let number: Int
  let type: String
  let reportID: String
  /// Milliseconds since 1970, as the clock is set now.
  let time: Int64

  /// - Throws: `Broken` where it is not what a client handed in to this namespace.
  init(meta: [UInt8], payload: [UInt8]?, namespace: NamespaceName) throws {
    let text = String(decoding: meta, as: UTF8.self)
    guard let type = Self.value("MONITOR_TYPE", in: text), let id = Self.value("REPORT_ID", in: text),
      let start = text.range(of: #","n":"#, last: true),
      let number = Int(text[start.upperBound...].prefix { $0 != "," })
    else { throw Broken(description: "a meta that no client wrote: \(text)") }
    let prefix = namespace.isBusiness ? "\(namespace)-" : ""
    guard type.hasPrefix(prefix), namespace.isBusiness || !type.contains("-") else {
      throw Broken(description: "a report of \(type) is in a packet of \(namespace)")
    }
    // Behind the daemon's own members, and before the common information.
    let body = ",\(LifeReport.body(number))"
    let follows = ["}", #","APP_MONITOR_VERSION""#, #","SYS_CLOCK_STEP""#]
    guard follows.contains(where: { text.contains(body + $0) }) else {
      throw Broken(description: "damaged: \(text)")
    }
    if let payload, payload != LifeReport.payload(number) {
      throw Broken(description: "the payload of \(number) is not its own")
    }
    (self.number, self.type, reportID) = (number, String(type.dropFirst(prefix.count)), id)
    let created = text.firstRange(of: #""CREATE_TIME":"#).flatMap { Int64(text[$0.upperBound...].prefix { $0 != "," }) }
    guard let created else { throw Broken(description: "a meta without its time: \(text)") }
    time = created + (Self.value(ClockMembers.stepKey, in: text).flatMap { Int64($0) } ?? 0)
  }

  /// The meta without the clock's steps, which another attempt may tell otherwise.
  static func withoutClock(_ meta: [UInt8]) -> [UInt8] {
    let text = String(decoding: meta, as: UTF8.self)
    guard let start = text.firstRange(of: #","\#(ClockMembers.stepKey)":"#)?.lowerBound else { return meta }
    let end = text[start...].dropFirst().firstIndex { $0 == "," || $0 == "}" } ?? text.endIndex
    return Array((text[..<start] + text[end...]).utf8)
  }

  private static func value(_ key: String, in text: String) -> String? {
    text.range(of: #""\#(key)":""#, last: false).map { String(text[$0.upperBound...].prefix { $0 != "\"" }) }
  }
}

extension String {
  fileprivate func range(of needle: String, last: Bool) -> Range<String.Index>? {
    last ? ranges(of: needle).last : firstRange(of: needle)
  }
}
