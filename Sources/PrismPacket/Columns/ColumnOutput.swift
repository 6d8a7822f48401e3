import Glibc
import PrismBase

/// A text of announced length, as it is written. It never takes more.
struct ColumnOutput {
  /// Room behind the text, so that a number is measured after it was written.
  static let spareBytes = 64

  private var at: UnsafeMutablePointer<UInt8>
  private let end: UnsafeMutablePointer<UInt8>

  private init(_ start: UnsafeMutablePointer<UInt8>, bytesMax: Int) { (at, end) = (start, start + bytesMax) }

  /// The text that `write` writes. - Parameter bytesMax: the announced bytes.
  static func text(
    bytesMax: Int, _ write: (inout ColumnOutput) throws(PacketError) -> Void
  ) throws(PacketError) -> [UInt8] {
    var failure: PacketError?
    let text = [UInt8](unsafeUninitializedCapacity: bytesMax + spareBytes) { buffer, count in
      var output = ColumnOutput(buffer.baseAddress!, bytesMax: bytesMax)
      do throws(PacketError) { try write(&output) } catch { failure = error }
      count = bytesMax - output.left
    }
    if let failure { throw failure }
    return text
  }

  /// Bytes that are still announced.
  var left: Int { end - at }

  @inline(__always) private func reserve(_ count: Int) throws(PacketError) {
    guard count <= end - at else { throw .unpackFailed }
  }

  mutating func append(byte: UInt8) throws(PacketError) {
    try reserve(1)
    put(byte)
  }

  @inline(__always) private mutating func put(_ byte: UInt8) {
    at.pointee = byte
    at += 1
  }

  mutating func append(_ text: StaticString) throws(PacketError) {
    try reserve(text.utf8CodeUnitCount)
    memcpy(at, text.utf8Start, text.utf8CodeUnitCount)
    at += text.utf8CodeUnitCount
  }

  @inline(__always)
  mutating func append(_ bytes: UnsafeBufferPointer<UInt8>, _ range: Range<Int>) throws(PacketError) {
    try reserve(range.count)
    put(bytes, range)
  }

  @inline(__always) private mutating func put(_ bytes: UnsafeBufferPointer<UInt8>, _ range: Range<Int>) {
    if range.count <= 16, range.lowerBound <= bytes.count - 16 {
      // Most are short: the bytes behind them are written over, or lie in the spare ones.
      let words = UnsafeRawPointer(bytes.baseAddress! + range.lowerBound).loadUnaligned(as: (UInt64, UInt64).self)
      UnsafeMutableRawPointer(at).storeBytes(of: words, as: (UInt64, UInt64).self)
    } else if !range.isEmpty {
      memcpy(at, bytes.baseAddress! + range.lowerBound, range.count)
    }
    at += range.count
  }

  mutating func append(quoted bytes: UnsafeBufferPointer<UInt8>, _ range: Range<Int>) throws(PacketError) {
    try reserve(range.count + 2)
    put(UInt8(ascii: "\""))
    put(bytes, range)
    put(UInt8(ascii: "\""))
  }

  mutating func append(hexadecimal bytes: UnsafeBufferPointer<UInt8>, _ range: Range<Int>) throws(PacketError) {
    try reserve(2 * range.count + 2)
    put(UInt8(ascii: "\""))
    if !range.isEmpty { HexDigits.encode(bytes.baseAddress! + range.lowerBound, range.count, at) }
    at += 2 * range.count
    put(UInt8(ascii: "\""))
  }

  /// - Parameter digits: of the number; 0: as many as it needs.
  mutating func append(
    id number: UInt64, _ bytes: UnsafeBufferPointer<UInt8>, _ prefix: Range<Int>, _ digits: Int, _ base: Int
  ) throws(PacketError) {
    try reserve(prefix.count)
    put(UInt8(ascii: "\""))
    put(bytes, prefix)
    try put(number, digits: digits, base: UInt64(base))
    put(UInt8(ascii: "\""))
    try reserve(0)
  }

  /// Takes 24 of the spare bytes at most.
  @inline(__always)
  private mutating func put(_ number: UInt64, digits: Int, base: UInt64) throws(PacketError) {
    // Backwards from the last of all places, and then moved to the first.
    let end = at + 24
    var (rest, first) = (number, end)
    if base == 16 {
      while rest > 0 {
        first -= 1
        first.pointee = Hex.digit(of: UInt8(truncatingIfNeeded: rest))
        rest >>= 4
      }
    } else {
      while rest > 9 {
        first -= 2
        let pair = UInt16(truncatingIfNeeded: rest % 100)
        first[0] = UInt8(ascii: "0") &+ UInt8(truncatingIfNeeded: pair / 10)
        first[1] = UInt8(ascii: "0") &+ UInt8(truncatingIfNeeded: pair % 10)
        rest /= 100
      }
      if rest > 0 || first == end {
        first -= 1
        first.pointee = UInt8(ascii: "0") &+ UInt8(truncatingIfNeeded: rest)
      }
    }
    while end - first < digits {
      first -= 1
      first.pointee = UInt8(ascii: "0")
    }
    let count = end - first
    guard digits == 0 || count == digits else { throw .unpackFailed }
    memmove(at, first, count)
    at += count
  }

  /// A number whose last `most` digits are its fraction. - Parameter least: the fraction digits that stay, zeros or not.
  mutating func append(number: Int64, least: Int, most: Int) throws(PacketError) {
    var (magnitude, fraction) = (number.magnitude, most)
    while fraction > least, magnitude % 10 == 0 {
      magnitude /= 10
      fraction -= 1
    }
    if number < 0 { put(UInt8(ascii: "-")) }
    if fraction > 0 {
      let power = NumberScan.powers[fraction].magnitude
      try put(magnitude / power, digits: 0, base: 10)
      put(UInt8(ascii: "."))
      try put(magnitude % power, digits: fraction, base: 10)
    } else {
      try put(magnitude, digits: 0, base: 10)
    }
    try reserve(0)
  }
}
