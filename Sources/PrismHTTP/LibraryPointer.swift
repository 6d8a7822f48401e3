/// A connection or a daemon of libmicrohttpd, whose own functions take it from any thread. Kept as a number, since a
/// pointer may not cross threads by Swift's rules; who holds one says why it is still valid.
struct LibraryPointer: Sendable, Hashable {
  private let bits: UInt

  init(_ pointer: OpaquePointer) {
    bits = UInt(bitPattern: pointer)
  }

  var pointer: OpaquePointer {
    OpaquePointer(bitPattern: bits)!
  }
}
