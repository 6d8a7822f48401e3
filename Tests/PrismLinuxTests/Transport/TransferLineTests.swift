import PrismBase
import PrismProtocol
import Testing

@testable import PrismCurl

@Suite("Places for transfers")
struct TransferLineTests {
  private static func job(_ id: UInt64, _ url: String) -> TransferMailbox.Job {
    let request = TransferRequest(url: url, headers: [], body: [], timeout: .seconds(20))
    return TransferMailbox.Job(id: id, request: request) { _ in }
  }

  private static func taken(_ line: inout TransferLine) -> [UInt64] {
    var ids: [UInt64] = []
    while let job = line.next() { ids.append(job.id) }
    return ids
  }

  @Test("no more are under way than there are places; the others follow in their order")
  func bounded() {
    var line = TransferLine(transfersMax: 4)
    for id in 1...6 { line.add(Self.job(UInt64(id), "http://a:1/")) }
    #expect(Self.taken(&line) == [1, 2, 3, 4])
    #expect(!line.hasNext)
    line.ended(Self.job(2, "http://a:1/"), timedOut: false)
    #expect(Self.taken(&line) == [5])
    #expect(line.remove(6)?.id == 6 && line.remove(6) == nil)
    line.ended(Self.job(1, "http://a:1/"), timedOut: false)
    #expect(Self.taken(&line) == [])
  }

  @Test("servers that time out come last, and leave a quarter of the places to the others")
  func slow() {
    var line = TransferLine(transfersMax: 4)
    for id in 1...8 { line.add(Self.job(UInt64(id), "http://hangs:\(id % 2)/x")) }
    for id in Self.taken(&line) { line.ended(Self.job(id, "http://hangs:\(id % 2)/x"), timedOut: true) }
    // All of them wait for servers that are known as slow now.
    #expect(Self.taken(&line) == [5, 7, 6])
    line.add(Self.job(9, "http://well/"))
    line.add(Self.job(10, "http://hangs:1/y"))
    #expect(Self.taken(&line) == [9])
    line.ended(Self.job(5, "http://hangs:1/x"), timedOut: nil)
    #expect(Self.taken(&line) == [])
    // One of them answers again: it is as good as any.
    line.ended(Self.job(7, "http://hangs:1/x"), timedOut: false)
    line.add(Self.job(11, "http://hangs:1/z"))
    #expect(Self.taken(&line) == [11])
  }

  @Test(
    "what the descriptors leave for uploads",
    arguments: [
      (64, 1), (256, 13), (400, 31), (1000, 34), (4096, 66), (16_384, 256),
      (65_536, 256), (524_288, 1024), (1 << 30, 1024),
    ] as [(Int, Int)])
  func places(limit: Int, uploads: Int) {
    #expect(DescriptorLimit.uploadsMax(of: limit) == uploads)
    // Six descriptors each, beside all clients that there may be, leave something for the rest.
    let clients = min(65_536, DescriptorLimit.connectionsMax(of: limit))
    #expect(limit < 256 || clients + 6 * uploads + 48 <= limit)
  }
}
