import PrismProtocol

/// The headers of a packet's POST (docs/packet.md, "The POST").
enum UploadHeaders {
  static func make(
    _ packet: BuiltPacket, dependsOn: PacketID?, token: String?
  ) -> [(name: String, value: String)] {
    var headers = [
      (name: "Content-Type", value: "application/vnd.prism.\(packet.context.kind.rawValue)"),
      ("Prism-Version", "1"),
      ("Prism-Namespace", packet.context.namespace.text),
      ("Prism-Device-Id", packet.context.deviceID),
      ("Prism-Packet-Id", packet.context.packetID.description),
      ("Prism-Item-Count", String(packet.itemCount)),
      ("Prism-Ledger", packet.ledgerHeader),
      ("Prism-Cipher", packet.seal.cipher.rawValue),
      ("Prism-Key-Id", packet.seal.keyID),
    ]
    if let dependsOn { headers.append(("Prism-Depends-On", dependsOn.description)) }
    if let mac = packet.mac { headers.append(("Prism-Mac", mac)) }
    if let token { headers.append(("Authorization", "Bearer \(token)")) }
    return headers
  }

  /// What a POST costs on the wire, headers and an ordinary answer included: booked before it is sent.
  static func estimatedBytes(_ request: UploadRequest) -> Int {
    request.headers.reduce(request.url.utf8.count + request.body.count + 1024) {
      $0 + $1.name.utf8.count + $1.value.utf8.count + 4
    }
  }

  static let connectTimeout: Duration = .seconds(10)

  /// 60 s and a second more for each 16 KiB.
  static func timeout(bodyBytes: Int) -> Duration {
    .seconds(60 + (bodyBytes + 16_383) / 16_384)
  }
}
