import PrismBase

/// The textual encoding of certificates and keys (RFC 7468), checked without a cryptographic library: complete blocks,
/// each of them one DER value.
enum PEM {
  enum Content: Sendable { case certificates, privateKey }

  /// Why `bytes` can't be what they should; nil when they can. Nothing of the file is in it.
  static func fault(in bytes: [UInt8], as content: Content) -> String? {
    guard let blocks = blocks(String(decoding: bytes, as: UTF8.self)) else {
      return "holds a PEM block that is cut off or damaged"
    }
    let isEncrypted = blocks.contains { $0.label == "ENCRYPTED PRIVATE KEY" || $0.hasHeaders }
    switch content {
    case .certificates where !blocks.contains { $0.label.hasSuffix("CERTIFICATE") }:
      return "holds no certificate in PEM (-----BEGIN CERTIFICATE-----)"
    case .privateKey where isEncrypted:
      return "holds an encrypted key, and prism cannot ask for its passphrase; decrypt it with openssl pkey"
    case .privateKey where !blocks.contains { $0.label.hasSuffix("PRIVATE KEY") }:
      return "holds no private key in PEM (-----BEGIN PRIVATE KEY-----)"
    case .certificates, .privateKey: return nil
    }
  }

  private struct Block {
    var label: String
    /// `Proc-Type` and the like (RFC 1421): a key encrypted the old way.
    var hasHeaders = false
    var base64: [UInt8] = []

    var isWhole: Bool {
      if hasHeaders { return true }
      guard let der = Base64.decode(base64[...]) else { return false }
      return DER.isOneSequence(der)
    }
  }

  /// The blocks; text outside of blocks is a comment. nil if a block is incomplete.
  private static func blocks(_ text: String) -> [Block]? {
    var result: [Block] = []
    var open: Block?
    for line in text.split(whereSeparator: \.isNewline) {
      let line = line.trimmingSpaces
      if let label = line.between("-----BEGIN ", "-----") {
        guard open == nil else { return nil }
        open = Block(label: label)
      } else if let label = line.between("-----END ", "-----") {
        guard let block = open, block.label == label, block.isWhole else { return nil }
        result.append(block)
        open = nil
      } else if line.contains(":") {
        open?.hasHeaders = true
      } else {
        open?.base64 += line.utf8
      }
    }
    return open == nil ? result : nil
  }
}

private enum DER {
  private static let sequence: UInt8 = 48, objectIdentifier: UInt8 = 6

  /// A SEQUENCE of exactly these bytes, or, as in EC parameters, an OBJECT IDENTIFIER (X.690, 8.1).
  static func isOneSequence(_ bytes: [UInt8]) -> Bool {
    guard bytes.count >= 2, [sequence, objectIdentifier].contains(bytes[0]) else { return false }
    guard bytes[1] & 0x80 != 0 else { return bytes.count == 2 + Int(bytes[1]) }
    let lengthBytes = Int(bytes[1] & 0x7F)
    guard (1...4).contains(lengthBytes), bytes.count >= 2 + lengthBytes else { return false }
    let length = bytes[2..<2 + lengthBytes].reduce(0) { $0 << 8 | Int($1) }
    return bytes.count == 2 + lengthBytes + length
  }
}

extension Substring {
  fileprivate var trimmingSpaces: Substring {
    var result = self
    while let last = result.last, last == " " || last == "\t" { result.removeLast() }
    return result
  }

  fileprivate func between(_ start: String, _ end: String) -> String? {
    guard hasPrefix(start), hasSuffix(end), count > start.count + end.count else { return nil }
    return String(dropFirst(start.count).dropLast(end.count))
  }
}
