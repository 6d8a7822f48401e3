/// A hash that is the same in every process, on every machine and in every version. So a file may depend on it, or several
/// programs. Anybody can make texts with equal hashes, so it protects nothing.
public enum StableHash {
  private static let (start, prime): (UInt64, UInt64) = (0xCBF2_9CE4_8422_2325, 0x0000_0100_0000_01B3)

  /// FNV-1a of 64 bits (http://www.isthe.com/chongo/tech/comp/fnv), mixed as MurmurHash3 does at its end
  /// (https://github.com/aappleby/smhasher/blob/master/src/MurmurHash3.cpp). FNV alone changes few bits between texts that
  /// differ at their end.
  public static func of(_ text: [UInt8]) -> UInt64 {
    let hash = text.reduce(start) { ($0 ^ UInt64($1)) &* prime }
    return mixed(mixed(hash, 0xFF51_AFD7_ED55_8CCD), 0xC4CE_B9FE_1A85_EC53).shifted
  }

  private static func mixed(_ hash: UInt64, _ factor: UInt64) -> UInt64 { hash.shifted &* factor }
}

extension UInt64 {
  /// With the high bits in the low ones, too.
  fileprivate var shifted: UInt64 { self ^ self >> 33 }
}
