/// Numbers as a SQLite file has them; the caller has checked that they lie within.
extension [UInt8] {
  func bigEndian16(_ at: Int) -> Int { Int(self[at]) << 8 | Int(self[at + 1]) }
  func bigEndian32(_ at: Int) -> Int { bigEndian16(at) << 16 | bigEndian16(at + 2) }
}
