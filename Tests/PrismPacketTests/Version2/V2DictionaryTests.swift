import PrismBase
import PrismProtocol
import PrismTestSupport
import Testing

@testable import PrismPacket

@Suite("Version 2: dictionaries on their way")
struct V2DictionaryTests {
  private static let key = Secret((0..<16).map { UInt8($0) })
  private static let dictionary = CompressionDictionary.trained(
    from: (0..<3000).map { Array(#"{"MONITOR_TYPE":"net","REPORT_ID":"\#($0)","host":"api\#($0 % 7).example"}"#.utf8) },
    bytesMax: 4096)!

  private static func question(_ cipher: Cipher = .aes128GCM) -> DictionaryQuestion {
    var random = SystemRandomNumberGenerator()
    return DictionaryQuestion(
      deviceID: "d1", namespace: .prism, id: PacketID(unixMilliseconds: 1_700_000_000_000, using: &random),
      cipher: cipher, keyID: "main")
  }

  @Test("the device that asks opens the answer, under each cipher", arguments: Cipher.allCases)
  func opens(cipher: Cipher) throws {
    let key = Secret((0..<cipher.keyBytes).map { UInt8($0) })
    let question = Self.question(cipher)
    let answer = try DictionaryAnswer(Self.dictionary, to: question, key: key)
    #expect(answer.body.count < Self.dictionary.bytes.count + 100)
    #expect(try answer.dictionary(for: question, key: key) == Self.dictionary)
    let headers = Dictionary(uniqueKeysWithValues: question.fields.map { ($0.name.lowercased(), $0.value) })
    #expect(try DictionaryQuestion(namespace: "prism") { headers[$0] } == question)
  }

  @Test(
    "an answer to another question, of another device or namespace, does not open",
    arguments: ["id", "device", "namespace"]
  )
  func bound(part: String) throws {
    let question = Self.question()
    var other = question
    switch part {
    case "id": other.id = Self.question().id
    case "device": other.deviceID = "d2"
    default: other.namespace = NamespaceName("shop")!
    }
    let answer = try DictionaryAnswer(Self.dictionary, to: other, key: Self.key)
    #expect(throws: PacketError.decryptionFailed) { try answer.dictionary(for: question, key: Self.key) }
  }

  @Test("a changed bit, another key and another content are refused", arguments: [Cipher.aes128GCM, .aes128CBC])
  func changed(cipher: Cipher) throws {
    let question = Self.question(cipher)
    let answer = try DictionaryAnswer(Self.dictionary, to: question, key: Self.key)
    var random = SeededRandom(seed: SeededRandom.announcedSeed("changed dictionaries"))
    for _ in 0..<100 {
      var changed = answer
      let place = Int.random(in: answer.body.indices, using: &random)
      changed.body[place] ^= 1 << UInt8.random(in: 0..<8, using: &random)
      #expect(throws: PacketError.self) { try changed.dictionary(for: question, key: Self.key) }
    }
    let otherKey = Secret([UInt8](repeating: 7, count: 16))
    #expect(throws: PacketError.self) { try answer.dictionary(for: question, key: otherKey) }
  }

  @Test(
    "a question without one of its headers, or with a wrong one, names it",
    arguments: [
      ("prism-version", nil), ("prism-version", "1"), ("prism-device-id", ""), ("prism-packet-id", "7"),
      ("prism-cipher", "rot13"), ("prism-key-id", ""),
    ] as [(String, String?)])
  func headers(name: String, value: String?) {
    var headers = Dictionary(uniqueKeysWithValues: Self.question().fields.map { ($0.name.lowercased(), $0.value) })
    headers[name] = value
    let fault = #expect(throws: PacketHeaderFault.self) {
      try DictionaryQuestion(namespace: "prism") { headers[$0] }
    }
    #expect(fault == PacketHeaderFault(name: name, isMissing: value == nil))
    #expect(throws: PacketHeaderFault(name: "namespace", isMissing: false)) {
      let headers = Dictionary(uniqueKeysWithValues: Self.question().fields.map { ($0.name.lowercased(), $0.value) })
      _ = try DictionaryQuestion(namespace: "No!") { headers[$0] }
    }
  }
}
