import Foundation
import PrismProtocol
import Testing

@testable import PrismPacket

/// A packet of Vectors/*.json.
struct Vector: CustomTestStringConvertible, Sendable {
  let testDescription: String
  let context: PacketContext
  let cipher: Cipher
  let key: Secret
  let body: [UInt8]
  let mac: String?
  let metas: [[UInt8]], payloads: [[UInt8]]
  let why: String?

  static let taken = load("packets")
  static let refused = load("packets-refused")

  private static func load(_ name: String) -> [Vector] {
    guard let url = Bundle.module.url(forResource: name, withExtension: "json", subdirectory: "Vectors"),
      let bytes = try? Data(contentsOf: url), let value = try? JSONValue(parsing: Array(bytes))
    else { return [] }
    return (value.array ?? []).compactMap(Vector.init)
  }

  private init?(_ value: JSONValue) {
    guard let name = value["name"]?.string, let kind = value["kind"]?.string.flatMap(RowKind.init(named:)),
      let cipher = value["cipher"]?.string.flatMap(Cipher.init), let key = value["key"]?.string.flatMap(Hex.decode),
      let body = value["body"]?.string.flatMap(Hex.decode), let device = value["deviceId"]?.string,
      let namespace = value["namespace"]?.string.flatMap(NamespaceName.init),
      let packetID = value["packetId"]?.string.flatMap({ PacketID($0) })
    else { return nil }
    testDescription = name
    context = PacketContext(deviceID: device, namespace: namespace, packetID: packetID, kind: kind)
    (self.cipher, self.key, self.body, mac) = (cipher, Secret(key), body, value["mac"]?.string)
    metas = (value["metas"]?.array ?? []).compactMap(\.string).map { Array($0.utf8) }
    payloads = (value["payloads"]?.array ?? []).compactMap(\.string).compactMap(Hex.decode)
    why = value["why"]?.string
  }
}

@Suite("The packets that others made")
struct VectorTests {
  @Test("all of them are read")
  func count() {
    #expect(Vector.taken.count == 15)
    #expect(Vector.refused.count == 22)
  }

  @Test("a packet gives back its metas and payloads", arguments: Vector.taken)
  func decodes(vector: Vector) throws {
    let decoder = try PacketDecoder(cipher: vector.cipher, key: vector.key)
    let packet = try decoder.decode(context: vector.context, body: vector.body, mac: vector.mac)
    #expect(packet.metas == vector.metas)
    #expect(packet.payloads == vector.payloads)
  }

  @Test("a packet that is none is refused for its reason", arguments: Vector.refused)
  func refuses(vector: Vector) throws {
    let decoder = try PacketDecoder(cipher: vector.cipher, key: vector.key)
    #expect { try decoder.decode(context: vector.context, body: vector.body, mac: vector.mac) } throws: {
      ($0 as? PacketError)?.rawValue == vector.why
    }
  }

  @Test("the key of codes is HKDF of the namespace's")
  func codeKeys() throws {
    let url = try #require(Bundle.module.url(forResource: "mac-keys", withExtension: "json", subdirectory: "Vectors"))
    for pair in try JSONValue(parsing: Array(Data(contentsOf: url))).array ?? [] {
      let key = try #require(pair["key"]?.string.flatMap(Hex.decode))
      #expect(Hex.encode(try Hashing.hkdfSHA256(key: key, info: "prism1 mac")) == pair["macKey"]?.string)
    }
  }
}
