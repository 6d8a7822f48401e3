import Glibc

/// The target of a request before libmicrohttpd decodes it. It is kept in the slot of a request that has no `Exchange` yet, as
/// an odd number, which no pointer is.
struct RequestTarget {
  private let bits: UInt

  init(_ text: UnsafePointer<CChar>) {
    let bytes = UnsafeRawBufferPointer(start: text, count: strlen(text))
    let isSound = strstr(text, "%00") == nil && bytes.allSatisfy { $0 > UInt8(ascii: " ") && $0 != 0x7F }
    bits = UInt(bytes.count) << 2 | (isSound ? 2 : 0) | 1
  }

  /// - Returns: nil if the slot holds an `Exchange`.
  init?(slot: UnsafeMutableRawPointer) {
    bits = UInt(bitPattern: slot)
    if bits & 1 == 0 { return nil }
  }

  var slot: UnsafeMutableRawPointer? { UnsafeMutableRawPointer(bitPattern: bits) }
  var byteCount: Int { Int(bits >> 2) }
  /// It holds no control character and no space, and no NUL when it is decoded.
  var isSound: Bool { bits & 2 != 0 }
}
