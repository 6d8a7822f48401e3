extension ScannedReport.Meta {
  /// Passes over the value that `json` comes to next, which should be an object.
  /// - Parameter reserved: the keys that set `mayCollide`.
  init(_ json: inout JSONScanner, _ text: Span<UInt8>, reserved: ReservedKeys) throws(JSONError) {
    guard json.next(text) == UInt8(ascii: "{") else {
      try json.skipValue(text, depth: 1)
      self = .notAnObject
      return
    }
    guard try json.enter(text, close: UInt8(ascii: "}"), depth: 1) else {
      self = .empty
      return
    }
    let start = json.position
    var end = start
    var filter = KeyFilter()
    var mayCollide = false
    repeat {
      let key = try json.key(text)
      if filter.insert(key, in: text) || reserved.mayContain(key, in: text) { mayCollide = true }
      try json.skipValue(text, depth: 2)
      end = json.position
    } while try json.another(text, close: UInt8(ascii: "}"))
    self = .members(start..<end, mayCollide: mayCollide)
  }

  /// Reads the object from `start` to the end of `text`, as strictly as the scanner of a line.
  /// - Throws: `bad_request`.
  public init(scanning text: Span<UInt8>, from start: Int, reserved: ReservedKeys) throws(Refusal) {
    var json = JSONScanner()
    json.position = start
    do throws(JSONError) {
      self = try Self(&json, text, reserved: reserved)
      guard json.next(text) == nil else { throw json.failure("something follows the object") }
    } catch {
      throw Refusal(.badRequest, "`meta` is \(JSONError(error.reason, at: error.offset - start))")
    }
    if let offset = json.invalidUTF8 { throw Refusal(.badRequest, "invalid UTF-8 at byte \(offset - start) of `meta`") }
  }
}

/// A Bloom filter for repeated keys: a set of 2,048 bits by hash. It never misses a repetition. About one of 40
/// ordinary metas with a dozen keys matches by mistake and is then checked exactly.
struct KeyFilter {
  private var bits = InlineArray<32, UInt64>(repeating: 0)

  /// true when an equal key may have been inserted before.
  @inline(__always)
  mutating func insert(_ key: ScannedString, in text: Span<UInt8>) -> Bool {
    if key.hasEscapes { return true }
    let hash = Self.hash(text, key.range)
    let (word, bit) = (Int(hash >> 58) & 31, UInt64(1) << (hash >> 48 & 63))
    defer { bits[word] |= bit }
    return bits[word] & bit != 0
  }

  /// Of the length and the first and last eight bytes, the same for equal keys.
  @inline(__always)
  private static func hash(_ text: Span<UInt8>, _ range: Range<Int>) -> UInt64 {
    let bytes = text.bytes
    var head: UInt64 = 0
    var tail: UInt64 = 0
    if range.count >= 8 {
      head = bytes.unsafeLoadUnaligned(fromByteOffset: range.lowerBound, as: UInt64.self)
      tail = bytes.unsafeLoadUnaligned(fromByteOffset: range.upperBound - 8, as: UInt64.self)
    } else if range.lowerBound + 8 <= text.count {
      head = UInt64(littleEndian: bytes.unsafeLoadUnaligned(fromByteOffset: range.lowerBound, as: UInt64.self))
      head &= (1 << UInt64(range.count * 8)) - 1
    } else {
      for index in range.reversed() { head = head << 8 | UInt64(text[index]) }
    }
    let mixed = (head ^ UInt64(range.count)) &* 0x9E37_79B9_7F4A_7C15 ^ tail &* 0xC2B2_AE3D_27D4_EB4F
    return (mixed ^ mixed >> 29) &* 0x94D0_49BB_1331_11EB
  }
}
