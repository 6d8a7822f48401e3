import Glibc
import PrismProtocol
import Testing

/// The memory of a secret, as another program would read it from `/proc`.
@Suite struct SecretMemoryTests {
  private static let byteCount = 8192
  /// The allocator writes some bytes of memory that it got back.
  private static let allocatorBytes = 64

  @Test("the bytes of a secret are overwritten with its last holder") func overwritten() throws {
    let memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC)
    try #require(memory >= 0)
    defer { close(memory) }
    let content = (0..<Self.byteCount).map { _ in UInt8.random(in: 1...255) }
    var (found, reads) = ([UInt8](repeating: 0, count: Self.byteCount), 0)
    for _ in 0..<16 {
      let place = Self.place(content, memory, &found)
      let wasRead = found == content
      // Nothing was allocated before it is read again.
      let count = pread(memory, &found, Self.byteCount, off_t(place))
      #expect(wasRead, "the secret is read while it is held")
      guard count == Self.byteCount else { continue }
      reads += 1
      let left = zip(found, content).dropFirst(Self.allocatorBytes).count { $0 == $1 }
      #expect(left < Self.byteCount / 16, "\(left) of \(Self.byteCount) bytes are left")
    }
    #expect(reads > 0, "the memory was not read behind the end of any secret")
  }

  /// Makes a secret and reads it. - Returns: where it was.
  private static func place(_ content: [UInt8], _ memory: Int32, _ found: inout [UInt8]) -> Int {
    let secret = Secret(content)
    return secret.withBytes { bytes in
      let place = Int(bitPattern: bytes.baseAddress)
      pread(memory, &found, bytes.count, off_t(place))
      return place
    }
  }
}
