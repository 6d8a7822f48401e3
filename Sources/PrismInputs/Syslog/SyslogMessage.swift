import PrismAdmission
import PrismBase
import PrismProtocol

/// A message of syslog: of RFC 5424, of RFC 3164, or of the forms between that programs send (docs/statsd-syslog.md, "Messages
/// of syslog"). Any bytes are a message. Pure.
struct SyslogMessage: Equatable {
  /// A part of structured data: its id, and names with their values.
  struct Element: Equatable {
    let id: ArraySlice<UInt8>
    var values: [(name: ArraySlice<UInt8>, value: [UInt8])] = []

    static func == (one: Self, other: Self) -> Bool {
      one.id == other.id && one.values.elementsEqual(other.values) { $0.name == $1.name && $0.value == $1.value }
    }
  }

  private static let severities = ["emerg", "alert", "crit", "err", "warning", "notice", "info", "debug"]
  private static let facilities =
    ["kern", "user", "mail", "daemon", "auth", "syslog", "lpr", "news", "uucp", "cron", "authpriv", "ftp"]
    + ["ntp", "audit", "alert", "clock"] + (0...7).map { "local\($0)" }
  private static let elementsMax = 64

  /// `user.notice` where the message has no priority (RFC 3164, section 4.3.3).
  private(set) var priority = 13
  private(set) var stamp: SyslogStamp?
  private(set) var host: ArraySlice<UInt8>?
  private(set) var app: ArraySlice<UInt8>?
  private(set) var pid: ArraySlice<UInt8>?
  private(set) var messageID: ArraySlice<UInt8>?
  private(set) var data: [Element] = []
  private(set) var text: ArraySlice<UInt8>
  private let isCut: Bool

  /// - Parameter isCut: more of it came than `bytes`.
  init(_ bytes: [UInt8], isCut: Bool = false) {
    (text, self.isCut) = (bytes[...], isCut)
    while let last = text.last, [0, 10, 13].contains(last) { text.removeLast() }
    if let priority = text.takePriority() { self.priority = priority }
    if !takeVersion1() { takeOld() }
  }

  /// Milliseconds since 1970, if the message says a time with its zone.
  var createdTime: Int64? { stamp?.unixMilliseconds }

  var appName: String { app.map { String(decoding: $0, as: UTF8.self) } ?? "" }

  /// As a meta has it, without braces.
  var members: [UInt8] {
    var result = Array(
      #""severity":"\#(Self.severities[priority % 8])","facility":"\#(Self.facilities[priority / 8])""#.utf8)
    func add(_ key: String, _ value: ArraySlice<UInt8>?) {
      guard let value else { return }
      result += ",\"\(key)\":".utf8
      result.appendQuoted(Array(value).span)
    }
    add("host", host)
    add("app", app)
    add("pid", pid)
    add("messageId", messageID)
    if !data.isEmpty { result += ",\"data\":\(dataObject.text)".utf8 }
    add("message", text)
    add("time", stamp?.text)
    let isText = ([text, host, app, pid, messageID].compactMap(\.self) + data.flatMap(\.texts))
      .allSatisfy { String(validating: $0, as: UTF8.self) != nil }
    let marks = (isText ? [] : ["utf8"]) + (isCut ? ["cut"] : [])
    if !marks.isEmpty { result += ",\"\(MendedMeta.marker)\":\"\(marks.joined(separator: ", "))\"".utf8 }
    return result
  }

  /// An id that comes again adds to its element, and a name to its list.
  private var dataObject: JSONValue {
    let elements = Self.grouped(data.map { ($0.id, $0.values) }).map { id, values in
      let members = Self.grouped(values.flatMap(\.self)).map { name, texts in
        let texts = texts.map { JSONValue.string(String(decoding: $0, as: UTF8.self)) }
        return JSONValue.Member(name, texts.count == 1 ? texts[0] : .array(texts))
      }
      return JSONValue.Member(id, .object(members))
    }
    return .object(elements)
  }

  /// By name, in the order in which the names first come. Names are one that differ only in bytes that are no UTF-8.
  private static func grouped<Value>(_ pairs: [(ArraySlice<UInt8>, Value)]) -> [(String, [Value])] {
    var (places, groups): ([String: Int], [(name: String, values: [Value])]) = ([:], [])
    for (bytes, value) in pairs {
      let name = String(decoding: bytes, as: UTF8.self)
      if let place = places[name] {
        groups[place].values.append(value)
      } else {
        places[name] = groups.count
        groups.append((name, [value]))
      }
    }
    return groups
  }

  // MARK: RFC 5424

  /// - Returns: false if it is no message of version 1; then nothing is taken.
  private mutating func takeVersion1() -> Bool {
    guard text.starts(with: "1 ".utf8) else { return false }
    var rest = text.dropFirst(2)
    let head = (0..<5).map { _ in rest.takeWord() }
    guard head.allSatisfy({ !$0.isEmpty }) else { return false }
    func word(_ index: Int) -> ArraySlice<UInt8>? { head[index].elementsEqual("-".utf8) ? nil : head[index] }
    let stamp = word(0).flatMap { SyslogStamp(full: $0) }
    guard stamp != nil || word(0) == nil, let data = rest.takeData(Self.elementsMax) else { return false }
    guard rest.isEmpty || rest.first == .space else { return false }
    rest = rest.dropFirst()
    if rest.starts(with: [0xEF, 0xBB, 0xBF]) { rest = rest.dropFirst(3) }
    (self.stamp, host, app, pid, messageID) = (stamp, word(1), word(2), word(3), word(4))
    (self.data, text) = (data, rest)
    return true
  }

  // MARK: RFC 3164

  private mutating func takeOld() {
    if let stamp = SyslogStamp(before: &text) {
      self.stamp = stamp
      var rest = text
      let word = rest.takeWord()
      // A host comes before a tag; a word of a message without a tag is one only if it looks like one.
      var (own, behind) = (text, rest)
      if own.takeTag() == nil, !word.isEmpty, behind.takeTag() != nil || word.contains(UInt8(ascii: ".")) {
        (host, text) = (word, rest)
      }
    }
    if let tag = text.takeTag() { (app, pid) = (tag.app, tag.pid) }
  }
}

extension SyslogMessage.Element {
  fileprivate var texts: [ArraySlice<UInt8>] { [id] + values.flatMap { [$0.name, $0.value[...]] } }
}

/// The time of a message as it came. One of RFC 3164 has no year and no zone: nothing is made of it.
struct SyslogStamp: Equatable {
  let text: ArraySlice<UInt8>
  /// nil: it has no year or no zone, or is no time that a report may have.
  private(set) var unixMilliseconds: Int64?

  private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

  /// Takes a time and the space behind it, of either form.
  init?(before rest: inout ArraySlice<UInt8>) {
    var behind = rest
    if let stamp = SyslogStamp(full: behind.takeWord()), behind.count < rest.count {
      (self, rest) = (stamp, behind)
      return
    }
    // `Oct 11 22:14:15`; the day may be ` 1`.
    let bytes = Array(rest.prefix(16))
    func digits(_ places: [Int]) -> Bool { places.allSatisfy { bytes[$0].isASCIIDigit } }
    guard bytes.count == 16, Self.months.contains(where: { bytes.starts(with: $0.utf8) }),
      digits([5, 7, 8, 10, 11, 13, 14]), bytes[4].isASCIIDigit || bytes[4] == .space,
      [3, 6, 15].allSatisfy({ bytes[$0] == .space }), bytes[9] == .colon, bytes[12] == .colon
    else { return nil }
    text = rest.prefix(15)
    rest = rest.dropFirst(16)
  }

  /// RFC 3339 with a zone.
  init?(full text: ArraySlice<UInt8>) {
    self.text = text
    guard let time = RFC3339.unixMilliseconds(text) else { return nil }
    if CreatedTime.least...CreatedTime.greatest ~= time { unixMilliseconds = time }
  }
}

extension ArraySlice<UInt8> {
  /// `<PRI>` of at most 191.
  fileprivate mutating func takePriority() -> Int? {
    guard first == UInt8(ascii: "<"), let end = prefix(5).firstIndex(of: UInt8(ascii: ">")) else { return nil }
    let digits = self[(startIndex + 1)..<end]
    guard !digits.isEmpty, digits.allSatisfy(\.isASCIIDigit) else { return nil }
    let number = digits.reduce(0) { $0 * 10 + Int($1 - UInt8(ascii: "0")) }
    guard number <= 191 else { return nil }
    self = self[(end + 1)...]
    return number
  }

  /// Up to a space, which is taken too.
  fileprivate mutating func takeWord() -> ArraySlice<UInt8> {
    let end = firstIndex(of: .space) ?? endIndex
    defer { self = self[end...].dropFirst() }
    return self[..<end]
  }

  /// `-`, or elements as RFC 5424 (section 6.3) has them. - Returns: nil for another text.
  fileprivate mutating func takeData(_ elementsMax: Int) -> [SyslogMessage.Element]? {
    if first == UInt8(ascii: "-") {
      removeFirst()
      return []
    }
    var elements: [SyslogMessage.Element] = []
    while first == .openBracket {
      guard elements.count < elementsMax, let element = takeElement() else { return nil }
      elements.append(element)
    }
    return elements.isEmpty ? nil : elements
  }

  private mutating func takeElement() -> SyslogMessage.Element? {
    removeFirst()
    guard let end = firstIndex(where: { $0 == .space || $0 == .closeBracket }), end > startIndex else { return nil }
    var element = SyslogMessage.Element(id: self[..<end])
    self = self[end...]
    while first == .space {
      removeFirst()
      guard let equals = firstIndex(of: UInt8(ascii: "=")), equals > startIndex,
        self[equals...].dropFirst().first == .quote
      else { return nil }
      let name = self[..<equals]
      self = self[equals...].dropFirst(2)
      guard let value = takeQuoted() else { return nil }
      element.values.append((name, value))
    }
    guard popFirst() == .closeBracket else { return nil }
    return element
  }

  /// Up to the quote at its end, without the backslashes before `"`, `\` and `]`.
  private mutating func takeQuoted() -> [UInt8]? {
    var value: [UInt8] = []
    while let byte = popFirst() {
      if byte == .quote { return value }
      if byte == .backslash, let next = first, [.quote, .backslash, .closeBracket].contains(next) {
        value.append(next)
        removeFirst()
      } else {
        value.append(byte)
      }
    }
    return nil
  }

  /// `app: `, `app[pid]: ` or `app[pid] `.
  fileprivate mutating func takeTag() -> (app: ArraySlice<UInt8>, pid: ArraySlice<UInt8>?)? {
    let end = prefix(129).firstIndex { $0 == .colon || $0 == .openBracket || $0 <= .space }
    guard let end, end > startIndex, self[end] > .space else { return nil }
    var (rest, pid): (ArraySlice<UInt8>, ArraySlice<UInt8>?) = (self[end...], nil)
    if rest.first == .openBracket {
      guard let close = rest.prefix(66).firstIndex(of: .closeBracket), close > end + 1 else { return nil }
      (pid, rest) = (self[(end + 1)..<close], self[(close + 1)...])
    }
    let hasColon = rest.first == .colon
    if hasColon { rest.removeFirst() }
    guard hasColon || pid != nil, rest.isEmpty || rest.first == .space else { return nil }
    defer { self = rest.dropFirst() }
    return (self[..<end], pid)
  }
}

extension UInt8 {
  static let space = UInt8(ascii: " ")
}
