/// One message of the forward protocol (Forward Protocol Specification v1.5, "Event Modes"), whole.
struct ForwardMessage: Equatable {
  struct Event: Equatable {
    /// Milliseconds since 1970; nil: not given, or not a time that a report may have.
    var time: Int64?
    /// The record's members, in `text`.
    var members: Range<Int>
    /// The first top-level field with a binary value.
    var payload: [UInt8]?
  }

  var tag = ""
  var events: [Event] = []
  /// The members of all records as JSON, without braces, one record after the other.
  var text: [UInt8] = []
  /// The id that is sent back after the commit; nil: the sender wants no answer.
  var chunk: [UInt8]?
  /// Events that cannot become reports: not `[time, record]`, or over `MsgPackReader.depthMax` levels deep.
  var unusableCount = 0

  enum Fault: Error, Equatable {
    /// The reader cannot find the next message: the connection is closed.
    case notForward
    /// `option.compressed` is neither gzip nor text, or does not unpack.
    case compression
    /// It unpacks to more than `unpackedBytesMax`, or has more than `eventsMax` events.
    case tooLarge
  }

  static let bytesMax = 4 * 1024 * 1024
  static let unpackedBytesMax = 16 * 1024 * 1024
  static let eventsMax = 200_000

  /// Unpacks gzip members to at most `bytesMax` bytes; nil if they are damaged or larger.
  typealias Unpack = ([UInt8], _ bytesMax: Int) -> [UInt8]?

  /// - Parameter range: of a whole message in `input`.
  init(_ range: Range<Int>, of input: Span<UInt8>, unpack: Unpack) throws(Fault) {
    let result: Result<Void, Fault>
    do throws(MsgPackReader.Fault) { result = try read(range, input, unpack) } catch { throw .notForward }
    try result.get()
  }

  private mutating func read(
    _ range: Range<Int>, _ input: Span<UInt8>, _ unpack: Unpack
  ) throws(MsgPackReader.Fault) -> Result<Void, Fault> {
    var reader = MsgPackReader(range)
    guard case .array(let count) = try reader.next(input), 2...4 ~= count,
      case .string(let name) = try reader.next(input)
    else { return .failure(.notForward) }
    tag = input.text(name)
    text.reserveCapacity(range.count)
    let optionIndex: Int
    var packed: Range<Int>?
    let second = try reader.next(input)
    switch second {
    case .array(let eventCount) where count <= 3 && !isTimed(second, reader, input, count):
      optionIndex = 2
      guard eventCount <= Self.eventsMax else { return .failure(.tooLarge) }
      for _ in 0..<eventCount { try takeEvent(&reader, input) }
    case .binary(let bytes), .string(let bytes):
      (optionIndex, packed) = (2, bytes)
    default:
      optionIndex = 3
      guard count >= 3 else { return .failure(.notForward) }
      let time = try self.time(second, &reader, input)
      try takeRecord(time, &reader, input)
    }
    var isCompressed = false
    if count > optionIndex { isCompressed = try readOption(&reader, input) }
    guard let packed else { return .success(()) }
    return try takePacked(packed, isCompressed: isCompressed, input, unpack)
  }

  /// Whether an array in the place of the time is a time with metadata (`[[time, metadata], record]`): a message with a
  /// record behind it.
  private func isTimed(_ token: MsgPackReader.Token, _ reader: MsgPackReader, _ input: Span<UInt8>, _ count: Int)
    -> Bool
  {
    guard case .array(2) = token, count == 3 else { return false }
    var reader = reader
    guard let first = try? reader.next(input) else { return false }
    return EventTime(first, input) != nil
  }

  /// `[time, record]`, or, with metadata, `[[time, metadata], record]`.
  private mutating func takeEvent(_ reader: inout MsgPackReader, _ input: Span<UInt8>) throws(MsgPackReader.Fault) {
    let start = reader.position
    guard case .array(2) = try reader.next(input) else {
      reader.position = start
      try reader.skip(input)
      unusableCount += 1
      return
    }
    let time = try self.time(try reader.next(input), &reader, input)
    try takeRecord(time, &reader, input)
  }

  private func time(
    _ token: MsgPackReader.Token, _ reader: inout MsgPackReader, _ input: Span<UInt8>
  ) throws(MsgPackReader.Fault) -> EventTime? {
    guard case .array(let count) = token else { return EventTime(token, input) }
    guard count > 0 else { return nil }
    let time = EventTime(try reader.next(input), input)
    for _ in 1..<count { try reader.skip(input) }
    return time
  }

  private mutating func takeRecord(
    _ time: EventTime?, _ reader: inout MsgPackReader, _ input: Span<UInt8>
  ) throws(MsgPackReader.Fault) {
    let (start, textStart) = (reader.position, text.count)
    do throws(MsgPackReader.Fault) {
      let payload = try EventRecord.append(&reader, input, to: &text)
      events.append(Event(time: time?.unixMilliseconds, members: textStart..<text.count, payload: payload))
    } catch {
      text.removeLast(text.count - textStart)
      reader.position = start
      try reader.skip(input)
      unusableCount += 1
    }
  }

  /// - Returns: whether the entries are compressed.
  private mutating func readOption(
    _ reader: inout MsgPackReader, _ input: Span<UInt8>
  ) throws(MsgPackReader.Fault) -> Bool {
    guard case .map(let count) = try reader.next(input) else { return false }
    var isCompressed = false
    for _ in 0..<count {
      let key = try reader.next(input)
      let start = reader.position
      let value = try reader.next(input)
      if case .string(let name) = key, case .string(let text) = value {
        switch input.text(name) {
        case "chunk": chunk = [UInt8](copying: input.extracting(text))
        case "compressed": isCompressed = input.text(text) != "text"
        default: break
        }
      } else {
        reader.position = start
        try reader.skip(input)
      }
    }
    return isCompressed
  }

  /// Entries one after the other, without an array around them.
  private mutating func takePacked(
    _ range: Range<Int>, isCompressed: Bool, _ input: Span<UInt8>, _ unpack: Unpack
  ) throws(MsgPackReader.Fault) -> Result<Void, Fault> {
    guard isCompressed else { return try takeEntries(range, input) }
    guard let entries = unpack([UInt8](copying: input.extracting(range)), Self.unpackedBytesMax) else {
      return .failure(.compression)
    }
    text.reserveCapacity(entries.count)
    return try takeEntries(0..<entries.count, entries.span)
  }

  private mutating func takeEntries(
    _ range: Range<Int>, _ input: Span<UInt8>
  ) throws(MsgPackReader.Fault) -> Result<Void, Fault> {
    var reader = MsgPackReader(range)
    while !reader.isAtEnd {
      guard events.count + unusableCount < Self.eventsMax else { return .failure(.tooLarge) }
      try takeEvent(&reader, input)
    }
    return .success(())
  }
}
