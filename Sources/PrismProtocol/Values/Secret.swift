import Glibc

/// Bytes that must never be printed: every textual form of it is `<secret>`. They are overwritten when nothing holds it any
/// more (explicit_bzero(3)).
public struct Secret: Sendable, Equatable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  /// Memory of its own, which nothing changes before its end.
  private final class Memory: @unchecked Sendable {
    let bytes: UnsafeBufferPointer<UInt8>

    init(_ content: [UInt8]) {
      let copy = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: content.count)
      _ = copy.initialize(from: content)
      bytes = UnsafeBufferPointer(copy)
    }

    deinit {
      let memory = UnsafeMutableBufferPointer(mutating: bytes)
      if let start = memory.baseAddress { explicit_bzero(start, memory.count) }
      memory.deallocate()
    }
  }

  private let memory: Memory

  /// - Parameter bytes: copied; the array itself is not overwritten.
  public init(_ bytes: [UInt8]) { memory = Memory(bytes) }

  /// Overwrites the array, if nothing else holds it.
  public init(taking bytes: inout [UInt8]) {
    self.init(bytes)
    bytes.withUnsafeMutableBytes { if let start = $0.baseAddress { explicit_bzero(start, $0.count) } }
    bytes = []
  }

  /// The number of bytes.
  public var count: Int { memory.bytes.count }

  /// A copy, which is not overwritten: for tokens and texts. Keys are used with `withBytes`.
  public var bytes: [UInt8] { Array(memory.bytes) }

  /// Calls `body` with the secret in its place.
  public func withBytes<Result, Failure: Error>(
    _ body: (UnsafeBufferPointer<UInt8>) throws(Failure) -> Result
  ) throws(Failure) -> Result { try body(memory.bytes) }

  public var description: String { "<secret>" }
  public var debugDescription: String { description }
  public var customMirror: Mirror { Mirror(self, children: []) }

  public static func == (one: Secret, other: Secret) -> Bool { one.memory.bytes.elementsEqual(other.memory.bytes) }
}

/// A file that the configuration names, with what was in it when the configuration was read. Another content is another
/// configuration: the one in force keeps what it has until the new one was found sound.
public struct HeldFile: Sendable, Equatable {
  /// From the root.
  public var path: String
  /// Of a token without the white space after it.
  public var content: Secret
  public init(path: String, content: Secret) { (self.path, self.content) = (path, content) }
}
