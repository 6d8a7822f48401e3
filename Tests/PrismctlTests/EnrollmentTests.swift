import Foundation
import Testing

@Suite("Enrolling", .timeLimit(.minutes(2)))
struct EnrollmentTests {
  private static func enroll(_ url: String, environment: [String] = []) throws -> Tool {
    let (state, id) = (NSTemporaryDirectory(), UUID().uuidString)
    let key = state + "/enroll-\(id)"
    defer { try? FileManager.default.removeItem(atPath: key + ".enrolling") }
    return try Tool(
      "env",
      environment + [Tool.built("prismctl"), "enroll", "--url", url, "--token", "secret", "--device", "d", key])
  }

  @Test("the token goes through no proxy to a collector on this machine")
  func proxy() throws {
    let proxy = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue), 0)
    defer { close(proxy) }
    var (address, size) = (sockaddr_in(), socklen_t(MemoryLayout<sockaddr_in>.size))
    (address.sin_family, address.sin_addr.s_addr) = (sa_family_t(AF_INET), UInt32(0x7F00_0001).bigEndian)
    let isListening = withUnsafeMutablePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(proxy, $0, size) == 0 && listen(proxy, 1) == 0 && getsockname(proxy, $0, &size) == 0
      }
    }
    try #require(isListening)
    let port = UInt16(bigEndian: address.sin_port)
    let tool = try Self.enroll(
      "http://localhost:1", environment: ["http_proxy=http://127.0.0.1:\(port)", "no_proxy="])
    #expect(tool.exitCode == 69 && tool.output.contains("Failed to connect to localhost port 1"), "\(tool.output)")
    #expect(accept(proxy, nil, nil) < 0, "it asked the proxy")
  }

  @Test(
    "an address from which the key could be read on its way is refused before anything is sent",
    arguments: [
      "http://192.0.2.1", "http://localhost.example", "http://127.0.0.1@192.0.2.1", "http://[::1]@192.0.2.1",
      "ftp://localhost", "localhost", "https://collector.example/?x", "https://",
    ])
  func address(url: String) throws {
    let tool = try Self.enroll(url)
    #expect(tool.exitCode == 64 && tool.output.contains("--url: must be https"), "\(tool.output)")
  }
}
