import PrismBase

extension PieceSource {
  /// The next 64 KiB, or what there is before `end`.
  /// - Throws: `internal` if it can't be read, or has become shorter.
  func piece(at offset: Int, before end: Int) throws(PacketError) -> [UInt8] {
    let wanted = min(64 * 1024, end - offset)
    var isRead = false
    let piece = [UInt8](unsafeUninitializedCapacity: max(0, wanted)) { buffer, count in
      count = (try? read(at: offset, into: UnsafeMutableRawBufferPointer(buffer))) ?? 0
      isRead = count == wanted
    }
    guard isRead else { throw .internal }
    return piece
  }
}
