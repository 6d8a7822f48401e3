/// A body that is made while it is sent: of any size in the memory of a piece.
public struct HTTPStream: Sendable {
  /// Bytes of the whole body: its `Content-Length`.
  public var byteCount: Int
  /// Fills the buffer, in the order of the body. It is called on the server's thread, so it must not wait for a peer.
  /// - Returns: the bytes that were written, at least 1; nil: the body can't be made, and the connection is closed.
  public var read: @Sendable (UnsafeMutableRawBufferPointer) -> Int?

  public init(byteCount: Int, read: @escaping @Sendable (UnsafeMutableRawBufferPointer) -> Int?) {
    (self.byteCount, self.read) = (byteCount, read)
  }
}
