import PrismPacket

/// One message of the forward protocol (Forward Protocol Specification v1.5, "Event Modes"), as far as its events, which
/// `ForwardEvents` reads one by one.
struct ForwardMessage: Equatable {
  /// The form of the events, which are all in `events`.
  enum Form: Equatable {
    /// A time and a record.
    case single
    /// Arrays of a time and a record, one after the other.
    case list
    /// The same in gzip members or zstd frames.
    case packed(PacketEncoding)
  }

  var tag = ""
  var form = Form.list
  /// In the input.
  var events = 0..<0
  /// The msgpack value that is sent back after the commit; nil: the sender wants no answer.
  var chunk: [UInt8]?
  /// Behind the message in the input.
  var end = 0

  enum Fault: Error, Equatable {
    /// The reader cannot find the next message, or it is no message: the connection is closed.
    case notForward
    /// `option.compressed` is not gzip, zstd or text.
    case compression
  }

  /// More than the chunks of Fluentd's memory buffer, 8 MiB, and what is around them.
  static let bytesMax = 12 * 1024 * 1024

  /// - Parameter start: of a message in `input`.
  init(from start: Int, of input: Span<UInt8>) throws(Fault) {
    let fault: Fault?
    do throws(MsgPackReader.Fault) { fault = try read(start, input) } catch { throw .notForward }
    if let fault { throw fault }
  }

  private mutating func read(_ start: Int, _ input: Span<UInt8>) throws(MsgPackReader.Fault) -> Fault? {
    var reader = MsgPackReader(start..<input.count)
    guard case .array(let count) = try reader.next(input), 2...4 ~= count else { return .notForward }
    switch try reader.next(input) {
    case .string(let name), .binary(let name): tag = input.text(name)
    default: return .notForward
    }
    let second = reader.position
    var optionIndex = 2
    switch try reader.next(input) {
    case .array(let eventCount) where count <= 3 && !isTimed(eventCount, reader, input, count):
      let first = reader.position
      for _ in 0..<eventCount { try reader.skip(input) }
      events = first..<reader.position
    case .binary(let bytes) where count <= 3, .string(let bytes) where count <= 3: events = bytes
    default:
      guard count >= 3 else { return .notForward }
      (form, optionIndex, reader.position) = (.single, 3, second)
      try reader.skip(input)
      try reader.skip(input)
      events = second..<reader.position
    }
    if count > optionIndex, !(try readOption(&reader, input)) { return .compression }
    end = reader.position
    return nil
  }

  /// Whether an array in the place of the time is a time with metadata (`[[time, metadata], record]`): a message with a
  /// record behind it.
  private func isTimed(_ elements: Int, _ reader: MsgPackReader, _ input: Span<UInt8>, _ count: Int) -> Bool {
    guard elements == 2, count == 3 else { return false }
    var reader = reader
    guard let first = try? reader.next(input) else { return false }
    return EventTime(first, input) != nil
  }

  /// - Returns: false: the events are compressed in a way that is not known.
  private mutating func readOption(
    _ reader: inout MsgPackReader, _ input: Span<UInt8>
  ) throws(MsgPackReader.Fault) -> Bool {
    guard case .map(let count) = try reader.next(input) else { return true }
    var compression = "text"
    for _ in 0..<count {
      let key = try reader.next(input)
      let start = reader.position
      let value = try reader.next(input)
      reader.position = start
      try reader.skip(input)
      guard case .string(let name) = key.asString else { continue }
      switch (input.text(name), value.asString) {
      case ("chunk", _) where value != .null: chunk = [UInt8](copying: input.extracting(start..<reader.position))
      case ("compressed", .string(let text)): compression = input.text(text)
      default: break
      }
    }
    if compression == "text" { return true }
    guard let encoding = PacketEncoding(rawValue: compression), encoding != .none else { return false }
    if form == .list { form = .packed(encoding) }
    return true
  }
}

extension MsgPackReader.Token {
  /// Some senders write texts as binary values.
  fileprivate var asString: MsgPackReader.Token { if case .binary(let range) = self { .string(range) } else { self } }
}
