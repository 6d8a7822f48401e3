import PrismConfig
import PrismPacket
import PrismProtocol
import Testing

@testable import PrismEngine

@Suite("The cache of remote configuration")
struct RemoteRecordTests {
  private static let record: RemoteRecord = {
    let (shop, pay) = (NamespaceName("shop")!, NamespaceName("pay")!)
    let entry = RemoteNamespace(name: shop, keys: [.init("appVersion", "größe"), .init("maxItem", .number("7"))])
    var layer = RemoteLayer(
      offered: [shop: entry], updateTime: 9, version: 12, validUntil: 1_700_000_000_001, timeFloor: 1_600_000_000_000)
    layer.trials = [shop: .init(previous: entry, tried: .seconds(125)), pay: .init(previous: nil)]
    layer.returned = [pay: .init(failed: RemoteNamespace(name: pay, keys: []), previous: nil)]
    return RemoteRecord(
      url: "https://h", publicKey: [1, 2, 3], layer: layer, lastApplied: .init(number: 9, unixMilliseconds: 1),
      lastFailed: .init(number: nil, reason: "\"no\"\n", unixMilliseconds: 2))
  }()

  @Test("is read as it was written, probation to the minute")
  func roundTrip() throws {
    let read = try RemoteRecord(bytes: try Self.record.bytes())
    #expect(read == Self.record)
    #expect(read.layer.trials[NamespaceName("shop")!]?.tried == .seconds(120))
    let least = RemoteRecord(
      url: "", publicKey: nil, layer: RemoteLayer(), lastApplied: nil, lastFailed: nil)
    #expect(try RemoteRecord(bytes: try least.bytes()) == least)
  }

  @Test("is never read otherwise: no byte of it may change or be missing")
  func damage() throws {
    let bytes = try Self.record.bytes()
    for index in bytes.indices {
      var other = bytes
      other[index] ^= 1
      #expect(throws: RemoteRecord.Damaged.self) { try RemoteRecord(bytes: other) }
      #expect(throws: RemoteRecord.Damaged.self) { try RemoteRecord(bytes: Array(bytes[..<index])) }
    }
    #expect(throws: RemoteRecord.Damaged.self) { try RemoteRecord(bytes: bytes + [0x20]) }
  }
}

@Suite("The question for remote configuration")
struct RemoteQuestionTests {
  @Test("escapes what it carries, and leaves out what there is not")
  func url() {
    var question = ConfigurationQuestion(deviceID: "a b/ä&c=%~-._")
    #expect(question.url("https://h/p") == "https://h/p?deviceId=a%20b%2F%C3%A4%26c%3D%25~-._")
    (question.deviceID, question.updateTime, question.version, question.lastApplied) = ("d", 7, 8, 6)
    (question.lastFailed, question.reason) = ("9", "x: 1, 2\n")
    #expect(
      question.url("https://h")
        == "https://h?deviceId=d&updateTime=7&version=8&lastApplied=6&lastFailed=9&reason=x%3A%201%2C%202%0A")
  }
}
