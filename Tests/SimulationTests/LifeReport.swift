import PrismBase
import PrismConfig
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

  var isCrash: Bool { type == ReportType.appCrash.text }
  func isLarge(for namespace: NamespaceConfiguration) -> Bool {
    Self.payload(number).count > namespace.maxBodyBytes
  }

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
    func broken(_ what: String) -> Broken { Broken(description: "\(what): \(String(decoding: meta, as: UTF8.self))") }
    guard let type = meta.text(of: "MONITOR_TYPE"), let id = meta.text(of: "REPORT_ID"),
      let number = meta.lastEnd(of: #","n":"#).flatMap({ meta.number(at: $0) })
    else { throw broken("a meta that no client wrote") }
    let prefix = namespace.isBusiness ? "\(namespace)-" : ""
    guard type.hasPrefix(prefix), namespace.isBusiness || !type.utf8.contains(UInt8(ascii: "-")) else {
      throw Broken(description: "a report of \(type) is in a packet of \(namespace)")
    }
    // Behind the daemon's own members, and before the common information.
    guard let end = meta.end(of: ",\(LifeReport.body(Int(number)))"),
      ["}", #","APP_MONITOR_VERSION""#, #","SYS_CLOCK_STEP""#, #","PAYLOAD_LEFT_OUT""#].contains(where: {
        meta.continues(with: $0, at: end)
      })
    else { throw broken("damaged") }
    if let payload, payload != LifeReport.payload(Int(number)) {
      throw Broken(description: "the payload of \(number) is not its own")
    }
    (self.number, self.type, reportID) = (Int(number), String(type.dropFirst(prefix.count)), id)
    guard let created = meta.end(of: #""CREATE_TIME":"#).flatMap({ meta.number(at: $0) }) else {
      throw broken("a meta without its time")
    }
    time = created + (meta.text(of: ClockMembers.stepKey).flatMap { Int64($0) } ?? 0)
  }

  /// The meta without the clock's steps, which another attempt may tell otherwise.
  static func withoutClock(_ meta: [UInt8]) -> [UInt8] {
    let member = #","\#(ClockMembers.stepKey)":"#
    guard let start = meta.end(of: member).map({ $0 - member.utf8.count }) else { return meta }
    let end = meta[(start + 1)...].firstIndex { $0 == UInt8(ascii: ",") || $0 == UInt8(ascii: "}") } ?? meta.endIndex
    return Array(meta[..<start] + meta[end...])
  }
}

/// A meta is searched byte by byte: a search in a `String` by characters took half of a life's time.
extension [UInt8] {
  fileprivate func continues(with text: String, at place: Int) -> Bool {
    place + text.utf8.count <= count && self[place..<place + text.utf8.count].elementsEqual(text.utf8)
  }

  /// The place behind the first `needle`; nil if it is not in here.
  fileprivate func end(of needle: String) -> Int? { place(of: needle, in: 0..<count).map { $0 + needle.utf8.count } }

  /// The place behind the last `needle`; nil if it is not in here.
  fileprivate func lastEnd(of needle: String) -> Int? {
    place(of: needle, in: (0..<count).reversed()).map { $0 + needle.utf8.count }
  }

  private func place(of needle: String, in places: some Collection<Int>) -> Int? {
    let first = needle.utf8.first
    return places.first { self[$0] == first && continues(with: needle, at: $0) }
  }

  /// The digits from a place on, as a number.
  fileprivate func number(at place: Int) -> Int64? {
    Int64(String(decoding: self[place...].prefix { $0 != UInt8(ascii: ",") }, as: UTF8.self))
  }

  /// The value of a member that is a string.
  fileprivate func text(of key: String) -> String? {
    end(of: #""\#(key)":""#).map { String(decoding: self[$0...].prefix { $0 != UInt8(ascii: "\"") }, as: UTF8.self) }
  }
}
