import PrismBase

extension UnixAddress {
  /// The address of `path`. - Throws: `pathUnusable`.
  static func checked(_ path: String) throws(SocketError) -> UnixAddress {
    guard let address = UnixAddress(path: path) else { throw .pathUnusable(path: path, bytesMax: pathBytesMax) }
    return address
  }
}
