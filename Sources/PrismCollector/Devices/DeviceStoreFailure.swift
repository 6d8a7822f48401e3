/// Why devices can't be read or written: one line.
package struct DeviceStoreFailure: Error, Sendable, Equatable, CustomStringConvertible {
  /// The file or the server, and its fault.
  package let description: String
  init(_ description: String) { self.description = description }
}
