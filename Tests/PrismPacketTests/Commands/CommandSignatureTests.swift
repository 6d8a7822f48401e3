import PrismBase
import PrismPacket
import PrismProtocol
import Testing

@Suite("Signatures of commands") struct CommandSignatureTests {
  /// The private key of RFC 8032, section 7.1, test 1.
  private static let key = SigningKey(
    pem: Array(
      """
      -----BEGIN PRIVATE KEY-----
      MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g
      -----END PRIVATE KEY-----

      """.utf8))!

  private static let request = CommandRequest(
    namespace: NamespaceName("shop")!, deviceID: "d1", id: RecordID("8f14e45f-ceea-467f-a0f1-bc7b3bd2f3d2")!,
    name: .run, args: ["name": .text("restart-till"), "force": .truth(true)], expires: 1_763_700_000_000)

  @Test("a signature holds for its command, and for no other one") func signature() throws {
    let signed = try Self.request.signed(by: Self.key)
    #expect(signed.isSigned(by: Self.key.publicKey))
    #expect(!Self.request.isSigned(by: Self.key.publicKey))
    var others = Array(repeating: signed, count: 7)
    others[0].namespace = NamespaceName("other")!
    others[1].deviceID = "d2"
    others[2].id = RecordID("8f14e45f-ceea-467f-a0f1-bc7b3bd2f3d3")!
    others[3].name = .collect
    others[4].args["force"] = .text("true")
    others[5].expires += 1
    others[6].signature![63] ^= 1
    for other in others { #expect(!other.isSigned(by: Self.key.publicKey)) }
    var key = Self.key.publicKey
    key[0] ^= 1
    #expect(!signed.isSigned(by: key))
    #expect(!signed.isSigned(by: []))
  }
}
