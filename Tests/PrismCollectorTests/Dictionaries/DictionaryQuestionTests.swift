import Foundation
import PrismBase
import PrismHTTP
import PrismPacket
import PrismProtocol
import PrismTestSupport
import Testing

@testable import PrismCollector

@Suite("GET /prism/dictionary")
struct DictionaryQuestionTests {
  private let rig = StoreRig()
  private static let dictionary = CompressionDictionary.trained(
    from: (0..<2000).map { Array(#"{"MONITOR_TYPE":"net","n":\#($0),"host":"api\#($0 % 7).example"}"#.utf8) },
    bytesMax: 2048)!

  private func collector(_ change: (inout CollectorOptions) -> Void = { _ in }) throws -> Collector {
    var options = CollectorOptions(state: rig.path, keys: ["main": CollectorTests.key])
    change(&options)
    return try Collector(options, log: rig.log)
  }

  private static func question(_ namespace: String = "prism", keyID: String = "main") -> DictionaryQuestion {
    DictionaryQuestion(
      deviceID: "d1", namespace: NamespaceName(namespace)!, id: CollectorTests.context(.meta).packetID,
      cipher: .aes128GCM, keyID: keyID)
  }

  private static func request(_ question: DictionaryQuestion) -> HTTPRequest {
    HTTPRequest(
      method: .get, path: DictionaryQuestion.path, query: [("namespace", question.namespace.text)],
      headers: question.fields.map { ($0.name.lowercased(), $0.value) },
      peer: HTTPPeer(address: "127.0.0.1", isLocal: true))
  }

  @Test("a dictionary is encrypted for the device that asks, and answers to packets name it; before it is made, 404")
  func answers() async throws {
    let collector = try collector()
    let question = Self.question()
    #expect(await collector.answer(Self.request(question)).status == 404)
    try await DictionaryStore(.folder(rig.path)).keep(
      KeptDictionary(dictionary: Self.dictionary, madeTime: 1), of: .prism)
    let first = await collector.answer(
      try CollectorTests.request(CollectorTests.context(.meta), metas: [#"{"MONITOR_TYPE":"net"}"#]))
    #expect(first.status == 200)
    let response = await collector.answer(Self.request(question))
    #expect(response.status == 200)
    let answer = DictionaryAnswer(body: response.body, mac: nil)
    #expect(try answer.dictionary(for: question, key: CollectorTests.key) == Self.dictionary)
    let packet = await collector.answer(
      try CollectorTests.request(CollectorTests.context(.meta), metas: [#"{"MONITOR_TYPE":"net"}"#]))
    #expect(packet.headers.first { $0.name == "Prism-Dictionary" }?.value == String(Self.dictionary.id))
    #expect(
      await collector.metrics.contains(#"prism_collector_dictionary_questions_total{outcome="served"} 1"#))
    await collector.close()
  }

  @Test("a key that this collector does not have, and one that is not for the namespace, are refused")
  func refused() async throws {
    let collector = try collector { options in
      options.keyRules["main"] = KeyRule()
      options.keyRules["main"]?.namespaces = ["prism"]
    }
    #expect(await collector.answer(Self.request(Self.question(keyID: "other"))).status == 401)
    #expect(await collector.answer(Self.request(Self.question("shop"))).status == 403)
    let bare = HTTPRequest(
      method: .get, path: DictionaryQuestion.path, query: [("namespace", "prism")], headers: [],
      peer: HTTPPeer(address: "127.0.0.1", isLocal: true))
    #expect(await collector.answer(bare).status == 400)
    await collector.close()
  }

  @Test("a packet with a dictionary is taken; one with another is 415, and comes again without")
  func packets() async throws {
    let collector = try collector()
    try await DictionaryStore(.folder(rig.path)).keep(
      KeptDictionary(dictionary: Self.dictionary, madeTime: 1), of: .prism)
    let foreign = try #require(
      CompressionDictionary.trained(
        from: (0..<2000).map { Array(#"{"MONITOR_TYPE":"boot","n":\#($0),"state":"\#($0 % 7) up"}"#.utf8) },
        bytesMax: 2048))
    let context = CollectorTests.context(.meta)
    let metas = Array(#"{"MONITOR_TYPE":"net","host":"api1.example"}"#.utf8)
    let cases: [(CompressionDictionary?, Int, Bool)] = [
      (foreign, 415, false), (nil, 200, false), (Self.dictionary, 200, true),
    ]
    for (dictionary, status, isDuplicate) in cases {
      let packet = try PacketWriter(
        cipher: .aes128GCM, keyID: "main", key: CollectorTests.key, encoding: .zstd, dictionary: dictionary
      ).write(CollectorTests.packetHeaders(context, itemCount: 1), metas: metas, payloads: [])
      let answer = await collector.answer(
        HTTPRequest(
          method: .post, path: "/prism/meta", query: [],
          headers: packet.headers.fields.map { ($0.name.lowercased(), $0.value) }, body: packet.body,
          peer: HTTPPeer(address: "127.0.0.1", isLocal: true)))
      let body = try JSONValue(parsing: answer.body)
      #expect(answer.status == status)
      #expect(body["code"]?.string == (status == 415 ? "unknownDictionary" : nil))
      if status == 200 { #expect(body["duplicate"]?.bool == isDuplicate) }
    }
    await collector.close()
  }
}
