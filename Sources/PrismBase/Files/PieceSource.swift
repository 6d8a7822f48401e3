import Glibc

/// Bytes that are read in pieces, as often as wanted: of a file that is too large for memory, or of memory.
public protocol PieceSource {
  /// All of them.
  var byteCount: Int { get }
  /// Fills `buffer` from `offset`. - Returns: the bytes read; fewer than asked for only at the end.
  func read(at offset: Int, into buffer: UnsafeMutableRawBufferPointer) throws(FileError) -> Int
}

extension [UInt8]: PieceSource {
  public var byteCount: Int { count }

  public func read(at offset: Int, into buffer: UnsafeMutableRawBufferPointer) -> Int {
    let piece = self[Swift.min(offset, count)...].prefix(buffer.count)
    buffer.copyBytes(from: piece)
    return piece.count
  }
}

/// An open file that nothing changes any more; closed with its last holder.
public final class PieceFile: PieceSource, Sendable {
  public let byteCount: Int
  private let descriptor: Int32
  private let path: String

  /// - Parameter descriptor: of a regular file; taken over, also when it throws.
  /// - Parameter path: for errors.
  public init(taking descriptor: Int32, of path: String) throws(FileError) {
    var status = stat()
    let isRead = fstat(descriptor, &status) == 0
    (self.descriptor, self.path, byteCount) = (descriptor, path, isRead ? Int(status.st_size) : 0)
    guard isRead else { throw FileError(path, cannot: "be read") }
  }

  deinit { close(descriptor) }

  public func read(at offset: Int, into buffer: UnsafeMutableRawBufferPointer) throws(FileError) -> Int {
    var count = 0
    while count < buffer.count {
      let read = pread(descriptor, buffer.baseAddress! + count, buffer.count - count, off_t(offset + count))
      if read < 0 && errno == EINTR { continue }
      guard read >= 0 else { throw FileError(path, cannot: "be read") }
      if read == 0 { break }
      count += read
    }
    return count
  }
}
