import Foundation
import PrismTestSupport
import Testing

/// The harnesses of libFuzzer over their corpora, and over random changes of them. `PRISM_SEED=N` replays a run, `PRISM_SOAK=N`
/// makes it N times as long. A rule that is broken ends the process with its words.
@Suite("What reads bytes from outside")
struct FuzzTests {
  private static let harnesses: [String: any FuzzHarness.Type] = [
    "columns": ColumnsHarness.self, "crash-spool": CrashSpoolHarness.self, "http-head": HTTPHeadHarness.self,
    "msgpack": MsgPackHarness.self, "otlp": OTLPHarness.self, "packet": PacketHarness.self,
    "remote-envelope": RemoteEnvelopeHarness.self, "request-line": RequestLineHarness.self,
    "salvage": SalvageHarness.self, "statsd": StatsdHarness.self, "syslog": SyslogHarness.self,
    "yaml": YAMLHarness.self,
  ]
  /// Its harness is C, with sanitizers (clients/c/Makefile).
  private static let ofC = "client-spool"
  private static let corpora = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appending(path: "Corpora")

  private static func corpus(_ name: String) throws -> [[UInt8]] {
    let folder = corpora.appending(path: name)
    return try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted().map {
      [UInt8](try Data(contentsOf: folder.appending(path: $0)))
    }
  }

  @Test("every corpus has a harness")
  func corpora() throws {
    let names = try FileManager.default.contentsOfDirectory(atPath: Self.corpora.path)
    #expect(Set(names) == Set(Self.harnesses.keys).union([Self.ofC]))
  }

  @Test("hold their rules for a corpus and changes of it", arguments: harnesses.keys.sorted())
  func holds(name: String) throws {
    let harness = try #require(Self.harnesses[name])
    let inputs = try Self.corpus(name)
    let seed = getenv("PRISM_SEED").flatMap { UInt64(String(cString: $0)) } ?? .random(in: 0...UInt64.max)
    print("\(name) over its corpus: seed \(seed) (replay with PRISM_SEED=\(seed))")
    var random = SeededRandom(seed: seed)
    for input in inputs { harness.run(input[...]) }
    for _ in 0..<300 * soakFactor {
      var input = inputs.randomElement(using: &random) ?? []
      for _ in 0..<Int.random(in: 1...8, using: &random) { Self.change(&input, inputs, &random) }
      harness.run(input[...])
    }
  }

  /// As libFuzzer does.
  private static func change(_ input: inout [UInt8], _ others: [[UInt8]], _ random: inout SeededRandom) {
    let place = Int.random(in: 0...input.count, using: &random)
    let end = min(input.count, place + Int.random(in: 1...16, using: &random))
    switch Int.random(in: 0..<6, using: &random) {
    case 0 where place < end: input[place] ^= 1 << UInt8.random(in: 0..<8, using: &random)
    case 1 where place < end: input[place] = .random(in: 0...255, using: &random)
    case 2: input.removeSubrange(place..<end)
    case 3: input.insert(contentsOf: input[place..<end], at: place)
    case 4: input.insert(.random(in: 0...255, using: &random), at: place)
    default:
      let other = others.randomElement(using: &random) ?? []
      input = input.prefix(place) + other.suffix(Int.random(in: 0...other.count, using: &random))
    }
  }
}
