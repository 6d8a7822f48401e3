import Glibc
import PrismBase
import Testing

@Suite struct StandardStreamsTests {
  @Test("a full disk is no end of output", arguments: [("/dev/full", false), ("/dev/null", true)])
  func fullDisk(path: String, isWritten: Bool) throws {
    let descriptor = open(path, O_WRONLY | O_CLOEXEC)
    defer { close(descriptor) }
    try #require(descriptor >= 0)
    #expect(StandardStreams.write([1, 2, 3], to: descriptor) == isWritten)
    #expect(StandardStreams.write([], to: descriptor), "there is nothing to write")
  }
}
