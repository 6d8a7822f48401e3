/// Why devices can't be read or written: one line.
package struct DeviceStoreFailure: Error, Sendable, Equatable, CustomStringConvertible {
  package let description: String
  init(_ description: String) { self.description = description }
}
