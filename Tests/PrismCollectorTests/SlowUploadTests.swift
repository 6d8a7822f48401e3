import Foundation
import Glibc
import PrismBase
import PrismHTTP
import PrismProtocol
import PrismTestSupport
import Testing

@testable import PrismCollector

/// Over a real socket, by a clock that the test turns.
@Suite("A slow upload", .timeLimit(.minutes(1)))
struct SlowUploadTests {
  private let folder = TemporaryFolder()

  @Test("the head of a packet tells whether its device's clock is wrong, however long the body takes")
  func slow() async throws {
    let time = ManualTime()
    var options = CollectorOptions(state: folder.path, keys: ["main": CollectorTests.key])
    options.listen = "127.0.0.1:0"
    let collector = try Collector(options, time: time, log: Logger(write: { _ in }))
    let server = try collector.serve()
    let request = try CollectorTests.request(
      CollectorTests.context(.meta), metas: [#"{"CREATE_TIME":1000}"#], sentTime: time.unixMilliseconds)
    // On a thread of its own, since it blocks.
    let answer = await withCheckedContinuation { continuation in
      Thread.detachNewThread {
        continuation.resume(returning: Self.send(request, to: server.port) { time.advance(by: .seconds(100)) })
      }
    }
    #expect(answer.hasPrefix("HTTP/1.1 200 "), "\(answer)")
    // The whole packet comes 100 s later than its device says.
    let late = try CollectorTests.request(
      CollectorTests.context(.meta), metas: [#"{"CREATE_TIME":1000}"#], sentTime: time.unixMilliseconds - 100_000)
    #expect(await collector.answer(late).status == 200)
    #expect(try await collector.store.page(ReportFilter()).map(\.createdTime) == [1000, 101_000])
    await server.stop()
  }

  /// Sends the body once the server has read the head and `meanwhile` was called. Blocks. - Returns: the answer.
  private static func send(_ request: HTTPRequest, to port: UInt16, meanwhile: () -> Void) -> String {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    defer { close(descriptor) }
    var address = sockaddr_in()
    (address.sin_family, address.sin_port) = (sa_family_t(AF_INET), port.bigEndian)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    let isConnected = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
      }
    }
    let fields = request.headers.map { "\($0.name): \($0.value)\r\n" }.joined()
    let head = "POST \(request.path) HTTP/1.1\r\nHost: prism\r\nConnection: close\r\nExpect: 100-continue\r\n\(fields)"
    let whole = head + "Content-Length: \(request.body.count)\r\n\r\n"
    guard isConnected, write(descriptor, whole, whole.utf8.count) == whole.utf8.count else { return "not sent" }
    var (goOn, chunk) = ("", [UInt8](repeating: 0, count: 4096))
    while !goOn.hasSuffix("\r\n\r\n") {
      let count = read(descriptor, &chunk, chunk.count)
      guard count > 0 else { return goOn }
      goOn += String(decoding: chunk[..<count], as: UTF8.self)
    }
    meanwhile()
    guard write(descriptor, request.body, request.body.count) == request.body.count else { return goOn }
    var answer = ""
    while case let count = read(descriptor, &chunk, chunk.count), count > 0 {
      answer += String(decoding: chunk[..<count], as: UTF8.self)
    }
    return answer
  }
}
