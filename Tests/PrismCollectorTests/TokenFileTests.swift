import Foundation
import PrismBase
import PrismPacket
import PrismTestSupport
import Synchronization
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
    let (whole, cut) = ("token-of-the-tests-that-is-whole", "token-of-the-tests")
    let filler = "#" + String(repeating: "x", count: WatchedFile<Int>.bytesMax - 2 - cut.utf8.count)
    #expect(try await !accepts(filler + "\n" + whole, cut))
    #expect(try await accepts(filler + "\n" + cut, cut), "this is as large as it may be")
    #expect(try await accepts(filler + "\n" + whole, cut), "those that were read last stay")
    #expect(try await !accepts("another-token-of-the-tests", cut))
  }

  @Test("a token is known by itself or by its SHA-256; no word of a comment, and no hash itself, is a token")
  func hashes() async throws {
    let path = FileManager.default.temporaryDirectory.appending(path: "tokens-\(UUID().uuidString)").path
    defer { try? FileManager.default.removeItem(atPath: path) }  // a left file harms no test
    let (plain, hashed) = ("plain-token-of-tests", "hashed-token-of-tests")
    let digest = Hex.encode(try Hashing.sha256(Array(hashed.utf8)))
    try "# tokens of alice, put-here-by-alice\n\n\(plain)\r\nsha256:\(digest)\n"
      .write(toFile: path, atomically: true, encoding: .utf8)
    let authenticator = TokenAuthenticator(path: path, time: ManualTime(), log: Logger(write: { _ in }))
    for token in [plain, hashed] {
      #expect(await authenticator.accepts("Bearer \(token)"))
      let code = try #require(await authenticator.sign("text", with: token))
      #expect(
        await authenticator.signer(of: "text", code: code)?.hash == Hex.encode(try Hashing.sha256(Array(token.utf8))))
    }
    for text in ["#", "tokens", "alice,", "put-here-by-alice", "", "sha256:\(digest)", digest, plain + "\r"] {
      #expect(await !authenticator.accepts("Bearer \(text)"), "\(text)")
      #expect(await authenticator.sign("text", with: text) == nil)
    }
    for header in [plain, "bearer \(plain)", "Bearer  \(plain)"] { #expect(await !authenticator.accepts(header)) }
  }

  @Test("the line of a reader's name is no token, and a fault in a file of senders", arguments: [true, false])
  func subjects(isOfReaders: Bool) async throws {
    let path = FileManager.default.temporaryDirectory.appending(path: "tokens-\(UUID().uuidString)").path
    defer { try? FileManager.default.removeItem(atPath: path) }  // a left file harms no test
    try "plain-token-of-tests\nsubject:ann@example.org\n".write(toFile: path, atomically: true, encoding: .utf8)
    let log = Mutex<[String]>([])
    let authenticator = TokenAuthenticator(
      path: path, isOfReaders: isOfReaders, time: ManualTime(),
      log: Logger(write: { line in log.withLock { $0.append(line) } }))
    #expect(await authenticator.accepts("Bearer plain-token-of-tests") == isOfReaders)
    #expect(await !authenticator.accepts("Bearer subject:ann@example.org"))
    #expect(log.withLock { $0.contains { $0.contains("has in line 2 a subject") } } == !isOfReaders)
  }
}
