import PrismConfig
import PrismProtocol
import Synchronization
import Testing

/// Tokens, certificates and their keys are read with the configuration: a bad new one is a fault, and what is in force
/// keeps the old one.
@Suite("Files that are held")
struct HeldFileTests {
  private static let namespace = """
    monitorList: [{type: order}]
    authorization: {tokenFile: token}
    tls: {caFile: ca.pem, certFile: cert.pem, keyFile: key.pem}
    """
  private static let sound = [
    "prismd.yaml": "", "namespaces.d/shop.yaml": namespace, "token": "tok3n\n", "ca.pem": FilesTests.certificate,
    "cert.pem": "a comment\n" + FilesTests.certificate + FilesTests.certificate,
    "key.pem": "-----BEGIN EC PARAMETERS-----\nBgA=\n-----END EC PARAMETERS-----\n" + FilesTests.privateKey,
  ]

  struct Bad: Sendable, CustomTestStringConvertible {
    let what: String, file: String, content: String, fault: String
    var testDescription: String { what }
    init(_ what: String, _ file: String, _ content: String, _ fault: String) {
      (self.what, self.file, self.content, self.fault) = (what, file, content, fault)
    }
  }

  private static let cut = "holds a PEM block that is cut off or damaged"
  private static let ca = "namespaces.d/shop.yaml:3: tls.caFile: is ca.pem, which "
  private static let key = "namespaces.d/shop.yaml:3: tls.keyFile: is key.pem, which "
  static let bad = [
    Bad(
      "an empty token", "token", "\n",
      "namespaces.d/shop.yaml:2: authorization.tokenFile: names a file that has no token in it; it holds one line of visible ASCII characters"
    ),
    Bad("an empty CA", "ca.pem", "", ca + "holds no certificate in PEM (-----BEGIN CERTIFICATE-----)"),
    Bad(
      "a key as a CA", "ca.pem", FilesTests.privateKey, ca + "holds no certificate in PEM (-----BEGIN CERTIFICATE-----)"
    ),
    Bad("a CA that is cut off", "ca.pem", String(FilesTests.certificate.dropLast(12)), ca + cut),
    Bad("a CA with a flipped digit", "ca.pem", FilesTests.certificate.replacing("MAA=", with: "MBA="), ca + cut),
    Bad("a CA that is no base64", "ca.pem", FilesTests.certificate.replacing("MAA=", with: "M=A="), ca + cut),
    Bad("a block in a block", "ca.pem", "-----BEGIN CERTIFICATE-----\n" + FilesTests.certificate, ca + cut),
    Bad(
      "a certificate as a key", "key.pem", FilesTests.certificate,
      key + "holds no private key in PEM (-----BEGIN PRIVATE KEY-----)"),
    Bad(
      "an encrypted key", "key.pem", FilesTests.privateKey.replacing("PRIVATE", with: "ENCRYPTED PRIVATE"),
      key + "holds an encrypted key, and prism cannot ask for its passphrase; decrypt it with openssl pkey"),
    Bad(
      "a key that is encrypted the old way", "key.pem",
      FilesTests.privateKey.replacing("-----\nM", with: "-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\nM"),
      key + "holds an encrypted key, and prism cannot ask for its passphrase; decrypt it with openssl pkey"),
  ]

  @Test("what is sound is read, and another content is another configuration")
  func content() throws {
    let folder = try ConfigurationFolder(Self.sound)
    let before = try folder.load().snapshot
    for (file, content) in [("token", "0ther"), ("ca.pem", FilesTests.certificate + "\n")] {
      let old = try folder.load().snapshot
      try folder.write(file, content)
      #expect(SnapshotDiff(from: old, to: try folder.load().snapshot).changed.keys.map(\.text) == ["shop"])
    }
    let lines = SnapshotDiff(from: before, to: try folder.load().snapshot).lines
    #expect(
      lines == [
        "shop: authorization.tokenFile: what the file holds is new", "shop: tls.caFile: what the file holds is new",
      ])
  }

  @Test("what can't be what it should is a fault that tells nothing of it", arguments: bad)
  func refused(bad: Bad) throws {
    let folder = try ConfigurationFolder(Self.sound)
    try folder.write(bad.file, bad.content)
    #expect(folder.faultLines() == [bad.fault])
  }

  @Test("a certificate and a key that don't belong together are a fault that names both, at each place, looked at once")
  func identity() throws {
    let folder = try ConfigurationFolder(Self.sound)
    try folder.write("namespaces.d/pay.yaml", Self.namespace)
    try folder.write("prismd.yaml", "remote: {url: \"https://h\",\n  certFile: cert.pem, keyFile: key.pem}\n")
    let asked = Mutex(0)
    let lines = folder.faultLines { certificate, key in
      asked.withLock { $0 += 1 }
      return certificate.isEmpty || key.isEmpty ? nil : "no pair"
    }
    let fault = "is key.pem beside the certificate cert.pem: no pair; give two that belong together"
    #expect(
      lines == [
        "prismd.yaml:2: remote.keyFile: \(fault)", "namespaces.d/pay.yaml:3: tls.keyFile: \(fault)",
        "namespaces.d/shop.yaml:3: tls.keyFile: \(fault)",
      ])
    #expect(asked.withLock { $0 } == 1)
    #expect(folder.faultLines { _, _ in nil } == [])
  }

  @Test("files with a fault, and files that are missing, are watched too: mending them mends the configuration")
  func watched() throws {
    let folder = try ConfigurationFolder(Self.sound)
    try folder.write("ca.pem", "")
    try folder.write("namespaces.d/shop.yaml", Self.namespace.replacing("key.pem", with: "/nowhere/key.pem"))
    do {
      _ = try folder.load()
      Issue.record("it loads")
    } catch {
      #expect(error.files.contains("\(folder.path)/ca.pem") && error.files.contains("/nowhere/key.pem"))
    }
  }
}
