import PrismHTTP
import PrismProtocol

/// What a packet's POST says of it in its headers (docs/packet.md, "The POST").
struct Delivery: Sendable {
  /// Rows of a packet.
  static let itemsMax = 10_000

  let context: PacketContext
  let cipher: Cipher
  let keyID: String
  let dependsOn: PacketID?
  let itemCount: Int
  let ledger: String?
  let mac: String?

  /// - Throws: 400 for another version, and naming the header that is missing or wrong; 415 for another content type.
  init(_ request: HTTPRequest, kind: ReportKind) throws(CollectorRefusal) {
    let expected = "application/vnd.prism.\(kind.rawValue)"
    guard request.header("content-type") == expected else {
      throw CollectorRefusal(415, code: .contentType, "Content-Type must be \(expected)")
    }
    guard request.headers("prism-version") == ["1"] else {
      throw CollectorRefusal(400, code: .version, "Prism-Version must be 1")
    }
    let device = try Self.value("prism-device-id", request) { text in
      (1...256).contains(text.utf8.count) && text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F } ? text : nil
    }
    context = PacketContext(
      deviceID: device, namespace: try Self.value("prism-namespace", request) { NamespaceName($0) },
      packetID: try Self.value("prism-packet-id", request) { PacketID($0) }, kind: kind)
    cipher = try Self.value("prism-cipher", request) { Cipher(rawValue: $0) }
    keyID = try Self.value("prism-key-id", request) { $0 }
    itemCount = try Self.value("prism-item-count", request) { Int($0).flatMap { $0 > 0 ? $0 : nil } }
    guard itemCount <= Self.itemsMax else {
      throw CollectorRefusal(
        413, code: .tooLarge, "the packet is too large: it has \(itemCount) rows; at most \(Self.itemsMax) are taken")
    }
    dependsOn =
      request.header("prism-depends-on") == nil ? nil : try Self.value("prism-depends-on", request) { PacketID($0) }
    (ledger, mac) = (request.header("prism-ledger"), request.header("prism-mac"))
  }

  private static func value<Value>(
    _ name: String, _ request: HTTPRequest, _ parse: (String) -> Value?
  ) throws(CollectorRefusal) -> Value {
    let values = request.headers(name)
    guard values.count == 1, let value = parse(values[0]) else {
      throw CollectorRefusal(
        400, code: .header, "the header \(name) is \(values.isEmpty ? "missing" : "not one that prism sends")")
    }
    return value
  }
}
