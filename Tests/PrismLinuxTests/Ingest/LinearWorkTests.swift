import Glibc
import PrismAdmission
import PrismConfig
import PrismProtocol
import Testing

@testable import PrismLinux

/// Ten times the input costs about ten times the work. The units that turns are paid in are counted: they are the same
/// on each machine. The units leave some work out: if it grows with the square of the input, it takes a hundred times
/// as long in each try. One try that takes less acquits, however busy the machine is.
@Suite("No input costs more than linear time", .serialized)
struct LinearWorkTests {
  struct Input: Sendable, CustomTestStringConvertible {
    let name: String
    var chunkBytes = Int.max
    let bytes: @Sendable (_ size: Int) -> [UInt8]
    var testDescription: String { name }
  }

  private static func repeated(_ text: String, _ size: Int, after head: String = "", then tail: String = "") -> [UInt8]
  {
    Array((head + String(repeating: text, count: size / text.utf8.count) + tail).utf8)
  }

  private static let get = "GET /v1/limits HTTP/1.1\r\nHost: p\r\n\r\n"
  private static let post = "POST /v1/reports HTTP/1.1\r\nHost: p\r\n"

  static let inputs = [
    Input(name: "empty lines") { repeated("\r\n", $0) },
    Input(name: "empty lines before an HTTP request") { repeated("\r\n", $0, after: get) },
    Input(name: "bad lines") { repeated("x\n", $0) },
    Input(name: "a line in single bytes", chunkBytes: 1) { repeated("x", $0 / 10) },
    Input(name: "an HTTP head in single bytes", chunkBytes: 1) { repeated("x", $0 / 10, after: "GET /") },
    Input(name: "pipelined requests") { repeated(get, $0) },
    Input(name: "a body in chunks of one byte") {
      repeated("1\r\nx\r\n", $0, after: post + "Transfer-Encoding: chunked\r\n\r\n")
    },
    Input(name: "a body of empty lines") {
      repeated("\n", $0 / 20, after: post + "Content-Length: \($0 / 20)\r\n\r\n")
    },
    Input(name: "a body of one long line") {
      repeated("[", $0, after: post + "Content-Length: \($0)\r\n\r\n")
    },
    Input(name: "a long meta") {
      repeated(#""a":1,"#, $0, after: #"{"type":"net","meta":{"#, then: #""b":2}}"# + "\n")
    },
    Input(name: "reports") { repeated(#"{"type":"net","meta":{"ms":12}}"# + "\n", $0) },
  ]

  /// Gives a connection all of `bytes`, as often as it takes a turn.
  private func take(_ bytes: [UInt8], _ chunkBytes: Int) -> (units: Int, time: Duration) {
    let rules = AdmissionRules(IngestRig.snapshot)
    let peer = ReportingPeer(userID: 1, groupIDs: [], processID: 1)
    let host = HostFacts(deviceID: "d", systemVersion: "Linux")
    let session = Session(rules: rules, host: host, peer: peer, sessionID: "s")
    let connection = IngestConnection(id: 1, userID: 1, descriptor: SharedDescriptor(-1))
    connection.conversation = InPlace(IngestConversation(session: session, version: "1"))
    let begun = Self.processorTime
    var units = 0
    for start in stride(from: 0, to: bytes.count, by: min(chunkBytes, bytes.count)) {
      let end = min(bytes.count, start + min(chunkBytes, bytes.count))
      var turn = WorkTurn.unbounded
      let credit = turn.credit
      connection.consume(bytes.span.extracting(start..<end), within: &turn, unixMilliseconds: 0)
      units += credit - turn.credit + WorkTurn.Cost.turn
    }
    return (units, Self.processorTime - begun)
  }

  private static var processorTime: Duration {
    var time = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
  }

  @Test("ten times the input, about ten times the work", arguments: inputs)
  func linear(input: Input) {
    let (few, many) = (input.bytes(16_000), input.bytes(160_000))
    var (once, tenfold) = (take(few, input.chunkBytes), take(many, input.chunkBytes))
    // The fixed cost of a connection is small beside 16,000 bytes.
    #expect(once.units >= few.count && tenfold.units <= once.units * 11, "\(once.units) units, then \(tenfold.units)")
    for _ in 0..<50 where tenfold.time > once.time * 30 + .milliseconds(1) {
      (once, tenfold) = (take(few, input.chunkBytes), take(many, input.chunkBytes))
    }
    #expect(tenfold.time <= once.time * 30 + .milliseconds(1), "\(once.time), then \(tenfold.time)")
  }
}
