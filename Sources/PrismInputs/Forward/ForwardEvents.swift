import PrismPacket

/// Reads the events of one message one by one. Packed events are unpacked as far as they are asked for.
struct ForwardEvents {
  struct Event {
    /// Milliseconds since 1970; nil: not given, or not a time that a report may have.
    var time: Int64?
    /// The first top-level field with a binary value.
    var payload: [UInt8]?
    /// Docker's mark of a line that comes in parts.
    var isPartial = false
  }

  /// The most that a chunk unpacks to: the chunks of Fluentd's file buffer.
  static let unpackedBytesMax = 256 * 1024 * 1024
  /// Of one packed event.
  static let eventBytesMax = ForwardMessage.bytesMax
  private static let pieceBytes = 64 * 1024

  private let form: ForwardMessage.Form
  /// The message, or the part of the unpacked events that is in memory.
  private var input: [UInt8]
  private var reader: MsgPackReader
  private let unpacker: PackedReader?
  private var unpackedBytes = 0
  /// The members of the last event's record as JSON, without braces.
  private(set) var members: [UInt8] = []
  /// Events that cannot become reports: not `[time, record]`, or over `MsgPackReader.depthMax` levels deep; one for all
  /// behind a damaged byte.
  private(set) var unusableCount = 0
  /// Events that `next` gave.
  private(set) var eventCount = 0
  private var isEnded = false
  /// The bytes behind the last event can't be read.
  private(set) var isDamaged = false
  /// A limit ended the events before their end.
  private(set) var isOverLimit = false

  /// - Parameter body: that the message was read of.
  init(_ message: ForwardMessage, _ body: [UInt8]) {
    form = message.form
    guard case .packed(let encoding) = form else {
      (unpacker, input, reader) = (nil, body, MsgPackReader(message.events))
      return
    }
    (unpacker, input, reader) = (try? PackedReader(body[message.events], encoding), [], MsgPackReader(0..<0))
  }

  /// The next event that can become a report; nil at the end.
  mutating func next() -> Event? {
    while !isEnded {
      if reader.isAtEnd, !unpack() {
        isEnded = true
        isDamaged = unpacker?.isDamaged == true
        if isDamaged || isOverLimit { unusableCount += 1 }
        break
      }
      let start = reader.position
      do throws(MsgPackReader.Fault) {
        if let event = try event() {
          eventCount += 1
          return event
        }
        unusableCount += 1
      } catch {
        reader.position = start
        if case .incomplete = error, unpack() { continue }
        unusableCount += 1
        (isEnded, isDamaged) = (true, form != .single)
      }
    }
    return nil
  }

  private mutating func event() throws(MsgPackReader.Fault) -> Event? {
    var (reader, text): (MsgPackReader, [UInt8]) = (reader, [])
    swap(&text, &members)
    defer {
      swap(&text, &members)
      self.reader = reader
    }
    let input = input
    return try Self.event(&reader, input.span, isSingle: form == .single, &text)
  }

  /// - Returns: nil for an event that cannot become a report; the reader is behind it.
  private static func event(
    _ reader: inout MsgPackReader, _ input: Span<UInt8>, isSingle: Bool, _ members: inout [UInt8]
  ) throws(MsgPackReader.Fault) -> Event? {
    let start = reader.position
    do throws(MsgPackReader.Fault) {
      var event = Event()
      let head = isSingle ? .array(2) : try reader.next(input)
      if head == .array(2) {
        members.removeAll(keepingCapacity: true)
        event.time = try time(&reader, input, metadata: &members)?.unixMilliseconds
        (event.payload, event.isPartial) = try EventRecord.append(&reader, input, to: &members)
        return event
      }
    } catch {
      if isSingle { throw error }
      if case .incomplete = error { throw error }
    }
    reader.position = start
    try reader.skip(input)
    return nil
  }

  private static func time(
    _ reader: inout MsgPackReader, _ input: Span<UInt8>, metadata members: inout [UInt8]
  ) throws(MsgPackReader.Fault) -> EventTime? {
    let token = try reader.next(input)
    guard case .array(let count) = token else { return EventTime(token, input) }
    guard count > 0 else { return nil }
    let time = EventTime(try reader.next(input), input)
    if count > 1 { try EventRecord.append(metadata: &reader, input, to: &members) }
    for _ in 1..<max(2, count) - 1 { try reader.skip(input) }
    return time
  }

  /// Unpacks more behind the rest that was not read. - Returns: false at the end of the events.
  private mutating func unpack() -> Bool {
    guard let unpacker, !unpacker.isAtEnd else { return false }
    input.removeFirst(reader.position)
    let before = input.count
    isOverLimit = before > Self.eventBytesMax || unpackedBytes > Self.unpackedBytesMax
    if isOverLimit { return false }
    unpacker.read(max(Self.pieceBytes, before), into: &input)
    unpackedBytes += input.count - before
    reader = MsgPackReader(0..<input.count)
    return input.count > before
  }
}
