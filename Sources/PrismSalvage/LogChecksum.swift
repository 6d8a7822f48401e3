/// SQLite's own checksum of a log: of 32-bit words, in pairs.
struct LogChecksum: Equatable {
  private var first: UInt32 = 0
  private var second: UInt32 = 0

  init() {}
  init(_ bytes: [UInt8], at offset: Int) {
    (first, second) = (UInt32(bytes.bigEndian32(offset)), UInt32(bytes.bigEndian32(offset + 4)))
  }

  mutating func add(_ bytes: ArraySlice<UInt8>, isBigEndian: Bool) {
    bytes.withUnsafeBytes { words in
      for offset in stride(from: 0, to: words.count, by: 8) {
        let (a, b) = (
          words.loadUnaligned(fromByteOffset: offset, as: UInt32.self),
          words.loadUnaligned(fromByteOffset: offset + 4, as: UInt32.self)
        )
        first = first &+ (isBigEndian ? UInt32(bigEndian: a) : UInt32(littleEndian: a)) &+ second
        second = second &+ (isBigEndian ? UInt32(bigEndian: b) : UInt32(littleEndian: b)) &+ first
      }
    }
  }

  func put(into bytes: inout [UInt8], at offset: Int) {
    bytes.putBigEndian32(first, at: offset)
    bytes.putBigEndian32(second, at: offset + 4)
  }
}
