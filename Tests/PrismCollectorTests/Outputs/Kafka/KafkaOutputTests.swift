import Foundation
import Glibc
import PrismBase
import PrismProtocol
import PrismTestSupport
import Testing

@testable import PrismCollector
@testable import PrismOutputs

@Suite("The output kafka", .serialized, .timeLimit(.minutes(5)))
struct KafkaOutputTests {
  private static let devices = ["a", "b", "c/d", "e", "f"]

  /// Stores a packet of each device a round, with reports that are numbered in their order.
  private static func fill(_ store: MemoryPacketStore, rounds: Range<Int>, reports: Int = 10) async throws {
    for round in rounds {
      for (index, device) in devices.enumerated() {
        let first = (round * devices.count + index) * reports
        _ = try await store.take(StoreRig.packet(Array(first..<first + reports), device: device))
      }
    }
  }

  /// - Parameter properties: so few messages in a wave that a page has many.
  private static func output(
    _ mock: KafkaMock, timeout: Duration = .seconds(2), properties: String = "message.max.bytes=3000"
  ) throws -> KafkaOutput {
    var options = KafkaOutput.Options(brokers: mock.brokers)
    (options.timeout, options.propertiesFile) = (timeout, mock.folder("properties"))
    try (properties + "\n").write(toFile: mock.folder("properties"), atomically: true, encoding: .utf8)
    chmod(mock.folder("properties"), 0o600)
    return KafkaOutput(options, time: SystemTime())
  }

  /// Holds what the brokers have to what the store has: every report, in order by key as it came first, and again only as
  /// it was.
  private static func judge(_ messages: [KafkaMock.Message], against store: MemoryPacketStore) async throws {
    var filter = ReportFilter(scope: .everything)
    (filter.limit, filter.hasPayloads) = (.max, true)
    let stored = try await store.page(filter)
    let expected = Dictionary(grouping: stored) { "\($0.device)/\($0.namespace)/\($0.kind)" }
    let found = Dictionary(grouping: messages, by: \.key)
    #expect(Set(found.keys) == Set(expected.keys))
    for (key, reports) in expected {
      var (first, seen): ([String], Set<String>) = ([], [])
      for message in found[key] ?? [] where seen.insert(message.value).inserted { first.append(message.value) }
      #expect(first == reports.map { String(decoding: $0.line, as: UTF8.self) }, "\(key)")
      let packets = Dictionary(uniqueKeysWithValues: reports.map { (String(decoding: $0.line, as: UTF8.self), $0) })
      for message in found[key] ?? [] {
        let report = try #require(packets[message.value])
        #expect(
          message
            == .init(
              key: key, packet: report.packetID, device: report.device, namespace: report.namespace, type: report.type,
              value: message.value))
      }
    }
  }

  @Test("a report is one message with its key and its headers, and the brokers' answers end the page")
  func plain() async throws {
    let (mock, store) = (try await KafkaMock.start(), MemoryPacketStore())
    try await Self.fill(store, rounds: 0..<3)
    _ = try await store.take(StoreRig.packet([1], device: "g", namespace: "shop", type: "sale ü", payload: [1, 2]))
    let output = try Self.output(mock)
    #expect(try await output.deliver(try await store.outputSource("x").next(after: 0, limit: 1000)) == [])
    let messages = try await mock.messages()
    #expect(messages.count == 151)
    try await Self.judge(messages, against: store)
    #expect(messages.contains { $0.key == "g/shop/payload" && $0.value.hasSuffix(#""payload":"AQI="}"#) })
    await output.close()
  }

  @Test("with errors, delays, new leaders and brokers that go away every report arrives, in order by key")
  func chaos() async throws {
    var random = SeededRandom(seed: SeededRandom.announcedSeed("kafka"))
    let (mock, store, rig) = (try await KafkaMock.start(), MemoryPacketStore(), StoreRig())
    let source = store.outputSource("kafka")
    let runner = OutputRunner("kafka", from: source, to: try Self.output(mock), time: SystemTime(), log: rig.log)
    let running = Task { await runner.run() }
    let errors = [-195, 6, 7, 19, 20, 56]  // connection lost, no leader, late, few replicas, storage
    for round in 0..<30 {
      try await Self.fill(store, rounds: round * 3..<round * 3 + 3)
      let broker = Int.random(in: 1...3, using: &random)
      switch Int.random(in: 0..<5, using: &random) {
      case 0: try await mock.tell("errors \(random.pick(errors)) \(Int.random(in: 1...3, using: &random))")
      case 1: try await mock.tell("rtt \(broker) \(random.pick([0, 20, 200]))")
      case 2: try await mock.tell("leader \(Int.random(in: 0..<KafkaMock.partitions, using: &random)) \(broker)")
      case 3: try await mock.tell("down \(broker)")
      default: for broker in 1...3 { try await mock.tell("up \(broker)") }
      }
    }
    for broker in 1...3 {
      try await mock.tell("up \(broker)")
      try await mock.tell("rtt \(broker) 0")
    }
    while try await source.cursor() < 4500 { try await Task.sleep(for: .milliseconds(20)) }
    running.cancel()
    await running.value
    #expect(await runner.figures.refused == 0)
    try await Self.judge(try await mock.messages(), against: store)
  }

  @Test("a message that fails ends the producer: no message overtakes it, and the next producer sends all again")
  func noGap() async throws {
    let (mock, store) = (try await KafkaMock.start(), MemoryPacketStore())
    try await Self.fill(store, rounds: 0..<10)
    let output = try Self.output(mock, timeout: .seconds(10))
    try await mock.tell("errors 10 1")
    let page = try await store.outputSource("x").next(after: 0, limit: 1000)
    await #expect(throws: OutputFailure.self) { try await output.deliver(page) }
    #expect(try await output.deliver(page) == [])
    try await Self.judge(try await mock.messages(), against: store)
    await output.close()
  }

  @Test("a report that brokers refuse is found among those that went with it, and only it is left out")
  func refused() async throws {
    let (mock, store) = (try await KafkaMock.start(brokers: 1), MemoryPacketStore())
    _ = try await store.take(StoreRig.packet([1, 2, 3, 4]))
    let output = try Self.output(mock, properties: "")
    let page = try await store.outputSource("x").next(after: 0, limit: 10)
    try await mock.tell("errors 10 1")
    let failure = await #expect(throws: OutputFailure.self) { try await output.deliver(page) }
    #expect(failure?.taken == 0)
    try await mock.tell("errors 87 1")
    #expect(try await output.deliver(page).count == 1)
    #expect(try await output.deliver(page) == [])
    #expect(try await mock.messages().count == 3 + 4)
    await output.close()
  }

  @Test("without brokers a page fails in time, and a stop does not wait for them")
  func away() async throws {
    let (mock, store, rig) = (try await KafkaMock.start(brokers: 1), MemoryPacketStore(), StoreRig())
    try await Self.fill(store, rounds: 0..<1)
    try await mock.tell("down 1")
    let page = try await store.outputSource("x").next(after: 0, limit: 1000)
    let failing = try Self.output(mock, timeout: .seconds(1))
    let failure = await #expect(throws: OutputFailure.self) {
      try await failing.deliver(page)
    }
    #expect(failure?.description.hasPrefix("the brokers took no message for 1 s: ") == true, "\(failure as Any)")
    let source = store.outputSource("kafka")
    let runner = OutputRunner(
      "kafka", from: source, to: try Self.output(mock, timeout: .seconds(600)), time: SystemTime(), log: rig.log)
    let running = Task { await runner.run() }
    while await runner.figures.waitingSince == nil { await Task.yield() }
    running.cancel()
    await running.value
    #expect(try await source.cursor() == 0)
  }

  @Test("a report that is too large is refused and counted, and delays no other")
  func tooLarge() async throws {
    let (mock, store) = (try await KafkaMock.start(brokers: 1), MemoryPacketStore())
    _ = try await store.take(StoreRig.packet([1]))
    _ = try await store.take(StoreRig.packet([2], device: "e", payload: [UInt8](repeating: 7, count: 3000)))
    _ = try await store.take(StoreRig.packet([3]))
    let output = try Self.output(mock, properties: "message.max.bytes = 2500\n# a comment")
    #expect(try await output.deliver(try await store.outputSource("x").next(after: 0, limit: 10)).map(\.id) == [2])
    #expect(try await mock.messages().count == 2)
    await output.close()
  }

  @Test(
    "a properties file sets what the promises don't rest on, and its faults name the line and no value",
    arguments: [
      ("security.protocol=ssl\n\n# x\n", nil), ("acks=1", ":1: acks can't be set"),
      ("batch.size=9", ":1: batch.size can't be set"),
      ("a=b", ":1: a is no property of librdkafka"), ("retry.backoff.ms=5\nsasl.password", ":2: must be NAME=VALUE"),
      ("plugin.library.paths=/x.so", ":1: plugin.library.paths can't be set"),
      ("retry.backoff.ms=secret", ":1: retry.backoff.ms has a value that librdkafka refuses"),
    ] as [(String, String?)])
  func properties(text: String, fault: String?) throws {
    let folder = TemporaryFolder()
    try text.write(toFile: folder("p"), atomically: true, encoding: .utf8)
    chmod(folder("p"), 0o600)
    var options = KafkaOutput.Options(brokers: "127.0.0.1:1")
    options.propertiesFile = folder("p")
    let read = Result { try KafkaOutput.properties(options) }
    if case .failure(let error as OutputFailure) = read {
      #expect(error.description.hasPrefix(folder("p") + (fault ?? "?")), "\(error)")
    } else {
      #expect(fault == nil)
    }
    chmod(folder("p"), 0o604)
    #expect(throws: OutputFailure.self) { try KafkaOutput.properties(options) }
  }
}

extension StoredReport {
  fileprivate var line: [UInt8] {
    var text: [UInt8] = []
    appendLine(to: &text)
    return text
  }
}
