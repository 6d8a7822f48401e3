import PrismAdmission
import PrismProtocol

/// Writes a record of the forward protocol as a report has it.
enum EventRecord {
  /// The most that a record takes as JSON before it is cut.
  static let textBytesMax = 6 * 1024 * 1024

  /// Reads a map from `reader`, and appends its members as JSON, without braces.
  /// - Returns: the first top-level field with a binary value, and whether the record is a part of a line.
  /// - Throws: `tooDeep`, `tooLarge`, `incomplete`, `malformed`; then `output` ends somewhere within the record.
  static func append(
    _ reader: inout MsgPackReader, _ input: Span<UInt8>, to output: inout [UInt8]
  ) throws(MsgPackReader.Fault) -> (payload: [UInt8]?, isPartial: Bool) {
    guard case .map(let count) = try reader.next(input) else { throw .malformed(offset: reader.position) }
    var (payload, isPartial): ([UInt8]?, Bool) = (nil, false)
    let limit = output.count + textBytesMax
    for _ in 0..<count {
      output.appendSeparator()
      let start = output.count
      try output.append(key: &reader, input)
      isPartial = isPartial || output.count - start == partialKey.count && output[start...].elementsEqual(partialKey)
      let value = try reader.next(input)
      if case .binary(let range) = value, payload == nil {
        payload = [UInt8](copying: input.extracting(range))
        var named: [UInt8] = []
        JSONValue.append(quoted: Mending.payloadKey, to: &named)
        output.insert(contentsOf: named + [.colon], at: start)
      } else {
        output.append(.colon)
        try output.append(value, &reader, input, depth: 1, limit)
      }
    }
    return (payload, isPartial)
  }

  /// Appends what Fluent Bit has beside the time as a member, unless it is empty.
  static func append(
    metadata reader: inout MsgPackReader, _ input: Span<UInt8>, to output: inout [UInt8]
  ) throws(MsgPackReader.Fault) {
    let value = try reader.next(input)
    if value == .map(0) || value == .null { return }
    output += "\"FLUENT_METADATA\":".utf8
    try output.append(value, &reader, input, depth: 1, output.count + textBytesMax)
  }

  private static let partialKey = Array(#""partial_message""#.utf8)
}

// Writes msgpack values as JSON.
extension [UInt8] {
  /// A map's key as a JSON string; a number, a bool and nil as their JSON text. A map or an array as a key is malformed: keys
  /// within keys would double their escapes at each level.
  fileprivate mutating func append(
    key reader: inout MsgPackReader, _ input: Span<UInt8>
  ) throws(MsgPackReader.Fault) {
    switch try reader.next(input) {
    case .string(let range), .binary(let range): appendQuoted(input.extracting(range))
    case .map, .array: throw .malformed(offset: reader.position)
    case let token:
      var text: [UInt8] = []
      try text.append(token, &reader, input, depth: 1, 1024)
      appendQuoted(text.span)
    }
  }

  /// - Parameter depth: containers around the value. - Parameter limit: of all bytes.
  fileprivate mutating func append(
    _ token: MsgPackReader.Token, _ reader: inout MsgPackReader, _ input: Span<UInt8>, depth: Int, _ limit: Int
  ) throws(MsgPackReader.Fault) {
    guard depth < MsgPackReader.depthMax else { throw .tooDeep }
    guard count <= limit else { throw .tooLarge }
    switch token {
    case .null: append(word: "null")
    case .bool(let value): append(word: value ? "true" : "false")
    case .signed(let number): append(decimal: number)
    case .unsigned(let number): append(decimal: number)
    case .double(let number): appendNumber(number)
    case .string(let range):
      guard count + range.count <= limit else { throw .tooLarge }
      appendQuoted(input.extracting(range))
    case .binary(let range): append(base64: input.extracting(range))
    case .other(let type, let range):
      if let time = EventTime(type: type, input.extracting(range)) {
        append(contentsOf: time.text.utf8)
      } else {
        append(base64: input.extracting(range))
      }
    case .array(let count):
      append(.openBracket)
      for _ in 0..<count {
        appendSeparator()
        try append(try reader.next(input), &reader, input, depth: depth + 1, limit)
      }
      append(.closeBracket)
    case .map(let count):
      append(.openBrace)
      for _ in 0..<count {
        appendSeparator()
        try append(key: &reader, input)
        append(.colon)
        try append(try reader.next(input), &reader, input, depth: depth + 1, limit)
      }
      append(.closeBrace)
    }
  }
}

/// The time of an event: ext type 0 (Forward Protocol Specification v1.5, "EventTime Ext Format"), msgpack's own timestamp
/// (ext type -1), or seconds.
struct EventTime: Equatable {
  var seconds: Int64
  var nanoseconds: Int64

  private init(seconds: Int64, nanoseconds: Int64) { (self.seconds, self.nanoseconds) = (seconds, nanoseconds) }

  /// nil for another ext type or length.
  init?(type: Int8, _ content: Span<UInt8>) {
    func number(_ range: Range<Int>) -> UInt64 { range.reduce(0) { $0 << 8 | UInt64(content[$1]) } }
    let (time, fraction): (UInt64, UInt64)
    switch (type, content.count) {
    case (0, 8): (time, fraction) = (number(0..<4), number(4..<8))
    case (-1, 4): (time, fraction) = (number(0..<4), 0)
    case (-1, 8): (time, fraction) = (number(0..<8) & (1 << 34 - 1), number(0..<8) >> 34)
    case (-1, 12): (time, fraction) = (number(4..<12), number(0..<4))
    default: return nil
    }
    guard time <= Int64.max else { return nil }
    (seconds, nanoseconds) = (Int64(time), Int64(min(fraction, 999_999_999)))
  }

  /// nil for a value that is no time.
  init?(_ token: MsgPackReader.Token, _ input: Span<UInt8>) {
    switch token {
    case .unsigned(let number): self.init(seconds: Int64(clamping: number), nanoseconds: 0)
    case .signed(let number): self.init(seconds: number, nanoseconds: 0)
    case .double(let number):
      guard number.magnitude < 1e15 else { return nil }
      let whole = number.rounded(.down)
      self.init(seconds: Int64(whole), nanoseconds: Int64((number - whole) * 1e9))
    case .other(let type, let range): self.init(type: type, input.extracting(range))
    default: return nil
    }
  }

  /// nil where it is zero, or beyond the years that a report may have.
  var unixMilliseconds: Int64? {
    guard seconds > 0, seconds <= CreatedTime.greatest / 1000 else { return nil }
    let time = seconds * 1000 + nanoseconds / 1_000_000
    return CreatedTime.least...CreatedTime.greatest ~= time ? time : nil
  }

  /// As a JSON number.
  var text: String {
    let digits = String(nanoseconds)
    return "\(seconds)." + String(repeating: "0", count: max(0, 9 - digits.count)) + digits
  }
}
