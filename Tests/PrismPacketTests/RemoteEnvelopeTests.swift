import PrismBase
import PrismProtocol
import Testing

@testable import PrismPacket

/// Key, data and signature were made by openssl and gzip (docs/remote-configuration.md has the commands).
@Suite("The envelope of remote configuration")
struct RemoteEnvelopeTests {
  private static let document = #"{"namespaces":[],"updateTime":7,"full":true,"version":7}"#
  private static let data =
    "H4sIAAAAAAACA6tWykvMTS0uSExOLVayio7VUSotSEksSQ3JzE1VsjLXUUorzclRsiopKk3VUSpLLSrOzM8DitcCAE+Rx8Y4AAAA"
  private static let signature =
    "M0JluiX0+e4DzgFOP/Vmbu/XoqwYQ4Rp6PAccaRzjwzZSsGX+wCd6WbBINvfmalDY8yeyrWmq773qe58mZEsAA=="
  private static let publicKey = Base64.decode(Array("D7yl7tEEtjoPgDTaavVhc8d0T5+nAPmxxUxqn+jiGUk=".utf8))!
  private static let pem = """
    -----BEGIN PRIVATE KEY-----
    MC4CAQAwBQYDK2VwBCIEIIdPEyJnJPFOZ2ASk9GtuFrLltMXDhtp6B/ctP3U3ZaN
    -----END PRIVATE KEY-----

    """

  private func envelope(data: String = data, signature: String? = signature, code: String = "1000") -> [UInt8] {
    let tail = signature.map { #","signature":"\#($0)""# } ?? ""
    return Array(#"{"message":"ok","code":\#(code),"data":"\#(data)"\#(tail)}"#.utf8)
  }

  @Test("what openssl signed and gzip packed is opened") func foreign() throws {
    let opened = try RemoteEnvelope.open(envelope(), publicKey: Self.publicKey)
    #expect(String(decoding: opened, as: UTF8.self) == Self.document)
    #expect(try RemoteEnvelope.open(envelope(signature: nil), publicKey: nil) == opened)
  }

  @Test("what is sealed is opened, and only by the key that signed it") func roundTrip() throws {
    let key = try #require(SigningKey(pem: Array(Self.pem.utf8)))
    #expect(key.publicKey == Self.publicKey)
    let sealed = try RemoteEnvelope.seal(Array(Self.document.utf8), key: key)
    #expect(try RemoteEnvelope.open(sealed, publicKey: Self.publicKey) == Array(Self.document.utf8))
    var other = Self.publicKey
    other[0] ^= 1
    #expect(throws: RemoteEnvelopeFault.wrongSignature) { try RemoteEnvelope.open(sealed, publicKey: other) }
  }

  @Test(
    "what is wrong with it is said",
    arguments: [
      ("", "the answer is not JSON at byte 0: the text ends where a value is expected"),
      ("<html>", "the answer is not JSON at byte 0: a value is expected"),
      (#"{"data":"x"}"#, "the answer's code is missing, must be 1000"),
      (
        #"{"code":2003,"message":"no such\u001bfleet"}"#,
        #"the answer's code is 2003, must be 1000; the server says: no such\u{1b}fleet"#
      ),
      (#"{"code":"1000"}"#, #"the answer's code is "1000", must be 1000"#),
      (#"{"code":1000}"#, "the answer has no `data`, a string"),
      (#"{"code":1000,"data":"H4sI*"}"#, "the answer's `data` is not base64 (RFC 4648, padded)"),
      (#"{"code":1000,"data":"H4sIAAAA"}"#, "the answer's `data` is not one whole gzip member"),
    ]) func refused(text: String, reason: String)
  {
    let fault = #expect(throws: RemoteEnvelopeFault.self) {
      try RemoteEnvelope.open(Array(text.utf8), publicKey: nil)
    }
    #expect(fault?.description == reason)
  }

  @Test(
    "a signature that is missing, another key's, invalid or over other data is refused before anything is unpacked",
    arguments: [
      (nil, data, RemoteEnvelopeFault.unsigned), ("", data, .wrongSignature), ("not base64", data, .wrongSignature),
      (Base64.encode([UInt8](repeating: 1, count: 64)), data, .wrongSignature),
      (signature, "A" + data.dropFirst(), .wrongSignature), (signature, "*", .wrongSignature),
    ]) func signatures(signature: String?, data: String, fault: RemoteEnvelopeFault)
  {
    #expect(throws: fault) {
      try RemoteEnvelope.open(envelope(data: data, signature: signature), publicKey: Self.publicKey)
    }
  }

  @Test("a bomb ends at 8 MiB, and data of over 1 MiB isn't unpacked") func bombs() throws {
    let bomb = [UInt8](repeating: 0x20, count: RemoteEnvelope.unpackedBytesMax)
    #expect(try RemoteEnvelope.open(try RemoteEnvelope.seal(bomb, key: nil), publicKey: nil) == bomb)
    #expect(throws: PacketError.tooLarge) { try RemoteEnvelope.seal(bomb + [0x20], key: nil) }
    let packed = try GzipCompressor().compress([UInt8](repeating: 0, count: 64 << 20))
    #expect(packed.count < RemoteEnvelope.packedBytesMax)
    #expect(throws: RemoteEnvelopeFault.unpackedTooLarge) {
      try RemoteEnvelope.open(envelope(data: Base64.encode(packed), signature: nil), publicKey: nil)
    }
    let large = Base64.encode([UInt8](repeating: 0x1F, count: RemoteEnvelope.packedBytesMax + 1))
    #expect(throws: RemoteEnvelopeFault.packedTooLarge(bytes: 1_048_577)) {
      try RemoteEnvelope.open(envelope(data: large, signature: nil), publicKey: nil)
    }
  }

  @Test(
    "what is no private key of Ed25519 signs nothing",
    arguments: [
      "", "D7yl7tEEtjoPgDTaavVhc8d0T5+nAPmxxUxqn+jiGUk=",
      """
      -----BEGIN PRIVATE KEY-----
      MC4CAQAwBQYDK2VuBCIEIJiNLYjcl5uBM3bdK0jGEmYowme7230o8kCn+iAnw/1J
      -----END PRIVATE KEY-----

      """,
      """
      -----BEGIN ENCRYPTED PRIVATE KEY-----
      MIGbMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAgucxxN81KM8wICCAAw
      DAYIKoZIhvcNAgkFADAdBglghkgBZQMEAQIEEByPwm4V/Amwx4zj4RvWdFAEQC9Y
      Kcv74tpsTo4hI5EcHK4rOz6d8BTfxM1W/5vqLbTwky14F59msYLgoJ/SGh+kkLds
      Mz/yl+l0xzVYdonx2bY=
      -----END ENCRYPTED PRIVATE KEY-----

      """,
    ]) func noKey(pem: String)
  {
    #expect(SigningKey(pem: Array(pem.utf8)) == nil)
  }
}
