import Foundation
import PrismBase
import PrismTestSupport
import Testing

@testable import PrismCollector

@Suite("The senders' tokens")
struct TokenFileTests {
  @Test("a token file that is too large lets no sender in, nor the beginning of a token that it would be cut at")
  func tooLarge() async throws {
    let path = FileManager.default.temporaryDirectory.appending(path: "tokens-\(UUID().uuidString)").path
    defer { try? FileManager.default.removeItem(atPath: path) }  // a left file harms no test
    let time = ManualTime()
    let authenticator = TokenAuthenticator(path: path, time: time, log: Logger(write: { _ in }))
    func accepts(_ tokens: String, _ given: String) async throws -> Bool {
      try tokens.write(toFile: path, atomically: true, encoding: .utf8)
      time.advance(by: .seconds(3))
      return await authenticator.accepts("Bearer " + given)
    }
    let filler = String(repeating: "x", count: TokenAuthenticator.fileBytesMax - 5)
    #expect(try await !accepts(filler + "\nabcdefgh", "abcd"))
    #expect(try await !accepts(filler + "\nabcdefgh", filler))
    #expect(try await accepts(filler + "\nabcd", "abcd"), "this is as large as it may be")
    #expect(try await accepts(filler + "\nabcdefgh", "abcd"), "those that were read last stay")
    #expect(try await !accepts("other", "abcd"))
  }
}
