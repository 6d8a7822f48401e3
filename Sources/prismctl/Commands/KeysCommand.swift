import PrismBase
import PrismProtocol

extension Command {
  static let keysNew = Command(
    words: ["keys", "new"], summary: "write a new key: mode 0600, never over an existing file", operands: ["FILE"],
    options: [Option("--bits", "128|256", "its length (128)")],
    sockets: [],
    example: "prismctl keys new --bits 256 /etc/prism/keys/main"
  ) { invocation throws(Failure) in
    guard let bits = Int(invocation["--bits"] ?? "128"), [128, 256].contains(bits) else {
      throw .usage("--bits: 128 or 256")
    }
    var random = SystemRandomNumberGenerator()  // the kernel's getrandom(2) on Linux
    let key = (0..<(bits / 8)).map { _ in UInt8.random(in: 0...255, using: &random) }
    try Files.create(invocation.operands[0], mode: 0o600, Array((Hex.encode(key) + "\n").utf8))
  }
}
