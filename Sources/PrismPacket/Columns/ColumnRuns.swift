import Glibc

/// The bytes of columns as they are written (docs/packet.md, "Columns"). Small runs lie near their numbers, large ones behind
/// them all. These are parts for the compressor, each with its own statistics.
struct ColumnRuns {
  /// A run of at least this many bytes lies behind.
  static let farBytesMin = 256

  /// zstd packs a smaller part by the statistics of the one before it, or of a dictionary, which are of other values.
  private static let partBytesMin = 1025

  private var near: [UInt8] = []
  private var far: [UInt8] = []
  private var cuts: [Int] = []
  private var endsInNoise = false

  /// All bytes, and where the parts behind the first begin.
  func joined() -> (bytes: [UInt8], cuts: [Int]) {
    var head = ColumnRuns()
    head.append(near.count)
    let first = head.near + near
    return (first + far, cuts.map { first.count + $0 })
  }

  mutating func append(byte: UInt8) { near.append(byte) }

  /// A number from 0, seven bits in each byte, the low ones first.
  mutating func append(_ number: Int) { append(bits: UInt64(number)) }

  mutating func append(signed number: Int64) { append(bits: UInt64(bitPattern: number << 1 ^ number >> 63)) }

  private mutating func append(bits number: UInt64) {
    var rest = number
    while rest > 0x7F {
      near.append(UInt8(truncatingIfNeeded: rest) | 0x80)
      rest >>= 7
    }
    near.append(UInt8(rest))
  }

  /// A run with its length.
  mutating func append(text: UnsafeBufferPointer<UInt8>) {
    append(text.count)
    append(run: text.count) { bytes in
      if text.count > 0 { memcpy(bytes, text.baseAddress!, text.count) }
    }
  }

  /// A run that `fill` writes: it gets the zeroed place.
  /// - Parameter isNoise: it does not shrink. Such runs share a part.
  mutating func append(run count: Int, isNoise: Bool = false, _ fill: (UnsafeMutablePointer<UInt8>) -> Void) {
    if count < Self.farBytesMin {
      near.extend(by: count, fill)
    } else {
      let isWhole = cuts.last.map { far.count - $0 >= Self.partBytesMin } ?? true
      if isWhole, !isNoise || !endsInNoise { cuts.append(far.count) }
      endsInNoise = isNoise
      far.extend(by: count, fill)
    }
  }
}

extension [UInt8] {
  fileprivate mutating func extend(by count: Int, _ fill: (UnsafeMutablePointer<UInt8>) -> Void) {
    guard count > 0 else { return }
    let start = self.count
    append(contentsOf: repeatElement(0, count: count))
    withUnsafeMutableBufferPointer { fill($0.baseAddress! + start) }
  }
}

/// The bytes of columns as they are read, trusting nothing in them.
struct ColumnInput {
  let bytes: UnsafeBufferPointer<UInt8>
  private var near: Int
  private var nearEnd: Int
  private var far: Int

  init(_ bytes: UnsafeBufferPointer<UInt8>) throws(PacketError) {
    (self.bytes, near, nearEnd, far) = (bytes, 0, bytes.count, 0)
    let count = try number()
    guard count <= bytes.count - near else { throw .unpackFailed }
    (nearEnd, far) = (near + count, near + count)
  }

  var isAtEnd: Bool { near == nearEnd && far == bytes.count }

  mutating func byte() throws(PacketError) -> UInt8 {
    guard near < nearEnd else { throw .unpackFailed }
    defer { near += 1 }
    return bytes[near]
  }

  /// At most 2⁵⁶ - 1, so that sums of some do not overflow.
  mutating func number() throws(PacketError) -> Int {
    let bits = try bits()
    guard bits < 1 << 56 else { throw .unpackFailed }
    return Int(bits)
  }

  mutating func signed() throws(PacketError) -> Int64 {
    let bits = try bits()
    return Int64(bitPattern: bits >> 1) ^ -Int64(bitPattern: bits & 1)
  }

  private mutating func bits() throws(PacketError) -> UInt64 {
    var (bits, shift) = (UInt64(0), UInt64(0))
    while true {
      let byte = try byte()
      guard shift < 63 || byte <= 1 else { throw .unpackFailed }
      bits |= UInt64(byte & 0x7F) << shift
      guard byte > 0x7F else { return bits }
      shift += 7
    }
  }

  /// The place of a run in `bytes`.
  mutating func run(_ count: Int) throws(PacketError) -> Range<Int> {
    if count < ColumnRuns.farBytesMin {
      guard count <= nearEnd - near else { throw .unpackFailed }
      near += count
      return near - count..<near
    }
    guard count <= bytes.count - far else { throw .unpackFailed }
    far += count
    return far - count..<far
  }

  /// A run with its length.
  mutating func text() throws(PacketError) -> Range<Int> { try run(try number()) }

  /// Appends the places of `count` texts in a run, each ended by a line feed, and with a byte at least.
  mutating func texts(_ count: Int, to places: inout [Range<Int>]) throws(PacketError) {
    var rest = try text()
    for _ in 0..<count {
      guard let end = bytes.lineFeed(in: rest), end > rest.lowerBound else { throw .unpackFailed }
      places.append(rest.lowerBound..<end)
      rest = end + 1..<rest.upperBound
    }
    guard rest.isEmpty else { throw .unpackFailed }
  }
}

extension UnsafeBufferPointer<UInt8> {
  /// The next line feed; nil without one.
  func lineFeed(in range: Range<Int>) -> Int? {
    guard !range.isEmpty, let base = baseAddress else { return nil }
    return memchr(base + range.lowerBound, Int32(UInt8(ascii: "\n")), range.count).map {
      UnsafeRawPointer($0) - UnsafeRawPointer(base)
    }
  }
}
