import PrismBase
import Synchronization
import Testing

@testable import PrismHTTP

@Suite("The memory of large answers")
struct AnswerBudgetTests {
  private static func answer(_ bytes: Int) -> HTTPResponse {
    HTTPResponse(status: 200, body: (0..<bytes).map { UInt8(truncatingIfNeeded: $0) })
  }

  /// The bytes of a stream, in pieces of 64 KiB.
  private static func read(_ stream: HTTPStream) -> [UInt8] {
    var (body, piece) = ([UInt8](), [UInt8](repeating: 0, count: 65_536))
    while let count = piece.withUnsafeMutableBytes({ stream.read($0) }) { body += piece.prefix(count) }
    return body
  }

  @Test("an answer over 256 KiB is a stream of its bytes, a smaller one stays") func streams() throws {
    let budget = AnswerBudget(bytesMax: 1_000_000)
    let large = Self.answer(300_001)
    let streamed = budget.streamed(large)
    let stream = try #require(streamed.stream)
    #expect(streamed.body.isEmpty && stream.byteCount == 300_001 && Self.read(stream) == large.body)
    #expect(budget.streamed(Self.answer(262_144)).stream == nil)
  }

  @Test("answers that are not read are bounded, and the next one is 503 until one has left") func bounded() {
    let budget = AnswerBudget(bytesMax: 1_000_000)
    var held = (0..<3).map { _ in budget.streamed(Self.answer(300_000)) }
    #expect(held.allSatisfy { $0.status == 200 })
    #expect(budget.streamed(Self.answer(300_000)).status == 503)
    held.removeLast()
    #expect(budget.streamed(Self.answer(300_000)).status == 200)
    held = []
    #expect(budget.streamed(Self.answer(2_000_000)).status == 200, "one alone is always sent")
  }
}
