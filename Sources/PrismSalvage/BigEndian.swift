/// Numbers as a SQLite file has them; the caller has checked that they lie within.
extension [UInt8] {
  func bigEndian16(_ at: Int) -> Int { Int(self[at]) << 8 | Int(self[at + 1]) }
  func bigEndian32(_ at: Int) -> Int { bigEndian16(at) << 16 | bigEndian16(at + 2) }
}

extension [UInt8] {
  mutating func putBigEndian32(_ value: UInt32, at offset: Int) {
    for byte in 0..<4 { self[offset + byte] = UInt8(truncatingIfNeeded: value >> (24 - 8 * UInt32(byte))) }
  }
}
