import PrismBase
import PrismPacket
import PrismProtocol

extension Command {
  static let keysNew = Command(
    words: ["keys", "new"], summary: "write a new key: mode 0600, never over an existing file", operands: ["FILE"],
    options: [
      Option("--bits", "128|256", "its length (128)"),
      Option("--seal", nil, "a private key that opens sealed payloads; its public key is printed"),
    ],
    sockets: [],
    example: "prismctl keys new --bits 256 /etc/prism/keys/main"
  ) { invocation throws(Failure) in
    if invocation.has("--seal") {
      guard invocation["--bits"] == nil else { throw .usage("--bits and --seal: a sealing key has 256 bits") }
      return try newSealingKey(invocation.operands[0])
    }
    guard let bits = Int(invocation["--bits"] ?? "128"), [128, 256].contains(bits) else {
      throw .usage("--bits: 128 or 256")
    }
    try Files.create(invocation.operands[0], mode: 0o600, Array((Hex.random(byteCount: bits / 8) + "\n").utf8))
  }

  private static func newSealingKey(_ path: String) throws(Failure) {
    guard let key = try? SealingPrivateKey() else {
      throw Failure(Failure.unavailable, "the system gave no random bytes; try again")
    }
    try Files.create(path, mode: 0o600, Array(key.pem.utf8))
    print("seal: {publicKey: \"\(key.publicKey.base64)\"}")
  }

  static let unseal = Command(
    words: ["unseal"], summary: "open a sealed payload, offline, to standard output", operands: ["FILE"],
    options: [
      Option("--key", "KEY-FILE", "the private key that `keys new --seal` wrote"),
      Option("--device", "ID", "the device that sealed it"),
      Option("--namespace", "N", "the namespace of its report"),
      Option("--report-id", "REPORT_ID", "the id of its report"),
    ],
    sockets: [],
    example: "prismctl unseal --key seal.pem --device d1 --namespace shop --report-id 7f3c stack.sealed"
  ) { invocation throws(Failure) in
    guard let keyFile = invocation["--key"], let device = invocation["--device"],
      let id = invocation["--report-id"], let name = invocation["--namespace"]
    else { throw .usage("unseal: --key, --device, --namespace and --report-id are needed") }
    guard let namespace = NamespaceName(name) else { throw .usage("--namespace: \(name.printable) is no namespace") }
    guard let key = SealingPrivateKey(pem: try Files.read(keyFile)) else {
      throw Failure(Failure.configuration, "\(keyFile): is no X25519 key in PEM; prismctl keys new --seal makes one")
    }
    let path = invocation.operands[0]
    let sealed = try Files.read(path)
    let report = SealedReport(deviceID: device, namespace: namespace, reportID: id)
    let payload: [UInt8]
    do throws(PacketError) {
      payload = try SealedPayload.contents(of: sealed, with: key, of: report).unpacked()
    } catch {
      throw Failure(
        Failure.no, "\(path): is not sealed to this key for this device, namespace and report: \(error.rawValue)")
    }
    try Files.writeOutput(payload)
  }
}
