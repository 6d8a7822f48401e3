import Glibc
import PrismBase
import PrismPacket
import PrismProtocol

extension Command {
  static let enroll = Command(
    words: ["enroll"], summary: "get this device's key from a collector, and write it into a new file",
    operands: ["FILE"],
    options: [
      Option("--url", "URL", "the collector, without a path; plain http on this machine only"),
      Option("--token", "TOKEN", "the enrollment token; others on this machine may see it while the command runs"),
      Option("--token-file", "FILE", "a file with the token, instead of --token"),
      Option("--device", "ID", "the device's id (as prismd derives it from the machine id)"),
      Option("--info", "TEXT", "a name or place of the device, for the collector's list"),
      Option("--bits", "128|256", "the key's length, as the cipher needs it (128)"),
      Option("--ca", "FILE", "certificates that the collector's is checked with, PEM"),
    ],
    sockets: [],
    example: "prismctl enroll --url https://collector.example --token-file token /etc/prism/keys/device"
  ) { invocation throws(Failure) in
    let path = invocation.operands[0]
    guard let byteCount = ["128": 16, "256": 32][invocation["--bits"] ?? "128"] else {
      throw .usage("--bits: 128 or 256")
    }
    // The key is handed out once: no file, no question.
    guard access(path, F_OK) != 0 else {
      throw Failure(Failure.cannotCreate, "\(path): is there already; no key was asked for")
    }
    let device = try deviceID(invocation)
    let pair = try EnrollmentKeyPair.at(path + ".enrolling")
    var question: [JSONValue.Member] = [
      .init("deviceId", .string(device)), .init("publicKey", .string(pair.publicKey.base64)),
    ]
    if let info = invocation["--info"] { question.append(.init("info", .string(info))) }
    let post = EnrollmentPost(
      url: try EnrollmentPost.address(invocation["--url"]), token: try token(invocation),
      authorities: invocation["--ca"])
    let answer = try post.send(.object(question))
    guard let key = try? answer.open(with: pair, of: device) else {
      throw Failure(Failure.notPermitted, "the answer's key is not sealed to this device; no key was written")
    }
    try Files.create(path, mode: 0o600, Array((Hex.encode(key.prefix(byteCount)) + "\n").utf8))
    unlink(path + ".enrolling")
    let setID = invocation["--device"] == nil ? "" : "device: {id: \(device)}\n"
    print("enrolled as \(device); the key is in \(path). Put this into prismd.yaml:\n")
    print("\(setID)keys: [{id: \(OutputText.line(answer.keyID)), file: \(FilePath.absolute(path))}]")
  }

  private static func token(_ invocation: Invocation) throws(Failure) -> String {
    let text: String
    switch (invocation["--token"], invocation["--token-file"]) {
    case (let token?, nil): text = token
    case (nil, let path?):
      text = String(decoding: try Files.read(path).filter { $0 > UInt8(ascii: " ") }, as: UTF8.self)
    default: throw .usage("enroll: give --token or --token-file")
    }
    guard (1...128).contains(text.utf8.count), text.isVisibleASCII else {
      throw .usage("the token must be 1 to 128 visible ASCII characters")
    }
    return text
  }

  private static func deviceID(_ invocation: Invocation) throws(Failure) -> String {
    if let id = invocation["--device"] {
      guard DeviceID.isValid(id) else {
        throw .usage("--device: must be 1 to 128 visible ASCII characters")
      }
      return id
    }
    if let id = (try? DeviceID.ofThisMachine()) ?? nil { return id }
    throw .usage("enroll: there is no /etc/machine-id to derive the device's id from; give --device")
  }
}

private enum EnrollmentKeyPair {
  /// The key pair that the enrollment is bound to: one that a call before left, whose answer may have been lost, or a new one.
  static func at(_ path: String) throws(Failure) -> SealingPrivateKey {
    if access(path, F_OK) == 0 {
      guard let known = SealingPrivateKey(pem: try Files.read(path)) else {
        throw Failure(
          Failure.noInput, "\(path): holds no X25519 key in PEM; remove it, and `device forget` at the collector")
      }
      return known
    }
    guard let new = try? SealingPrivateKey() else { throw Failure(Failure.software, "no key pair can be made") }
    try Files.create(path, mode: 0o600, Array(new.pem.utf8))
    return new
  }
}
