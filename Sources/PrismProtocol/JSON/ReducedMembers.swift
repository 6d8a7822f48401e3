import PrismBase

/// The members of a JSON object in less text, for one that is too long to be read as a tree. Long strings are cut, and the
/// rest that does not fit is left out. Pure.
public struct ReducedMembers: Sendable {
  /// As JSON without braces.
  public private(set) var text: [UInt8] = []
  /// Bytes that were left out: of strings without their escapes.
  public private(set) var lostBytes = 0
  /// The member with the longest string as its value; its key has 256 bytes at most.
  public private(set) var longest: (key: ScannedString, value: ScannedString)?

  private var scanner: JSONScanner
  private let bytesMax, stringBytesMax: Int
  /// Nothing can be shorter: what is over `bytesMax` is left out.
  private let isShortest: Bool
  private var isOver = false

  /// A member that is as short has room behind `bytesMax`, so that a long one before it does not push it out.
  private static let shortBytes = 128
  private static let keyBytesMax = 256

  /// - Parameter members: where they are in `input`, without braces. - Parameter bytesMax: five quarters of it at most.
  /// - Parameter stringBytesMax: of which a longer string has no use.
  /// - Returns: nil for what is no JSON.
  public init?(_ input: Span<UInt8>, _ members: Range<Int>, bytesMax: Int, stringBytesMax: Int) {
    // The less is left of each string, the more members fit.
    for bytes in [stringBytesMax, stringBytesMax / 10] {
      self.init(members.lowerBound, bytesMax, bytes, isShortest: false)
      if (try? read(input, to: members.upperBound)) != nil { return }
      if !isOver { return nil }
    }
    self.init(members.lowerBound, bytesMax, Self.shortBytes, isShortest: true)
    guard (try? read(input, to: members.upperBound)) != nil else { return nil }
  }

  private init(_ start: Int, _ bytesMax: Int, _ stringBytesMax: Int, isShortest: Bool) {
    scanner = JSONScanner(position: start)
    (self.bytesMax, self.stringBytesMax, self.isShortest) = (bytesMax, stringBytesMax, isShortest)
  }

  private mutating func read(_ input: Span<UInt8>, to end: Int) throws(JSONError) {
    while scanner.next(input) != nil, scanner.position < end {
      let (start, before, lostBefore) = (scanner.position, text.count, lostBytes)
      try checkSize()
      if before > 0 { text.append(UInt8(ascii: ",")) }
      let key = try key(input)
      let value = try value(input, depth: 1)
      if text.count > bytesMax + bytesMax / 4 || before >= bytesMax && text.count - before > Self.shortBytes {
        try checkSize()
        text.removeSubrange(before...)
        lostBytes = lostBefore + scanner.position - start
      }
      if let value, key.range.count <= Self.keyBytesMax, value.range.count > longest?.value.range.count ?? 0 {
        longest = (key, value)
      }
      if scanner.next(input) == UInt8(ascii: ",") { scanner.position += 1 }
    }
  }

  /// - Throws: if shorter strings are to be tried.
  private mutating func checkSize() throws(JSONError) {
    guard text.count >= bytesMax, !isShortest else { return }
    isOver = true
    throw scanner.failure("the text is long")
  }

  /// Copies a key with its colon.
  private mutating func key(_ input: Span<UInt8>) throws(JSONError) -> ScannedString {
    let start = scanner.position
    let key = try scanner.key(input)
    text.append(copying: input, start..<scanner.position)
    return key
  }

  /// - Returns: the value if it is a string.
  @discardableResult
  private mutating func value(_ input: Span<UInt8>, depth: Int) throws(JSONError) -> ScannedString? {
    let first = scanner.next(input)
    let start = scanner.position
    switch first {
    case UInt8(ascii: "\""):
      let string = try scanner.string(input)
      append(string, input)
      return string
    case UInt8(ascii: "{"): try container(input, open: UInt8(ascii: "{"), close: UInt8(ascii: "}"), depth: depth)
    case UInt8(ascii: "["): try container(input, open: UInt8(ascii: "["), close: UInt8(ascii: "]"), depth: depth)
    default:
      try scanner.skipValue(input, depth: depth)
      text.append(copying: input, start..<scanner.position)
    }
    return nil
  }

  /// Of a container the first elements stay.
  private mutating func container(
    _ input: Span<UInt8>, open: UInt8, close: UInt8, depth: Int
  ) throws(JSONError) {
    text.append(open)
    let isObject = close == UInt8(ascii: "}")
    if try scanner.enter(input, close: close, depth: depth) {
      repeat {
        try checkSize()
        _ = scanner.next(input)
        guard text.count < bytesMax else {
          let start = scanner.position
          if isObject { _ = try scanner.key(input) }
          try scanner.skipValue(input, depth: depth + 1)
          lostBytes += scanner.position - start
          continue
        }
        if text.last != open { text.append(UInt8(ascii: ",")) }
        if isObject { _ = try key(input) }
        try value(input, depth: depth + 1)
      } while try scanner.another(input, close: close)
    }
    text.append(close)
  }

  // MARK: Strings

  private mutating func append(_ string: ScannedString, _ input: Span<UInt8>) {
    let range = string.range
    var end = range.upperBound
    if range.count > stringBytesMax {
      end = range.lowerBound
      while true {
        let next = end + Self.unit(input, at: end).bytes
        if next > range.lowerBound + stringBytesMax { break }
        end = next
      }
      while end > range.lowerBound, 0x80..<0xC0 ~= input[end] { end -= 1 }
      let rest = end..<range.upperBound
      lostBytes += string.hasEscapes ? Self.plainBytes(input, rest) : rest.count
    }
    text.append(UInt8(ascii: "\""))
    text.append(copying: input, range.lowerBound..<end)
    text.append(UInt8(ascii: "\""))
  }

  /// Bytes of a part of a string without its escapes.
  public static func plainBytes(_ input: Span<UInt8>, _ range: Range<Int>) -> Int {
    var (position, result) = (range.lowerBound, 0)
    while position < range.upperBound {
      let unit = unit(input, at: position)
      (position, result) = (position + unit.bytes, result + unit.plainBytes)
    }
    return result
  }

  /// A byte or an escape of a sound string; a pair of surrogates is one.
  private static func unit(_ input: Span<UInt8>, at position: Int) -> (bytes: Int, plainBytes: Int) {
    guard input[position] == UInt8(ascii: "\\") else { return (1, 1) }
    guard input[position + 1] == UInt8(ascii: "u") else { return (2, 1) }
    let code = (position + 2..<position + 6).reduce(0) { $0 << 4 | Int(Hex.digit(input[$1]) ?? 0) }
    return 0xD800..<0xDC00 ~= code ? (12, 4) : (6, code < 0x80 ? 1 : code < 0x800 ? 2 : 3)
  }
}
