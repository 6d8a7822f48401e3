extension String {
  /// All but the unreserved characters of RFC 3986, section 2.3, escaped.
  public var percentEncoded: String {
    let bytes = utf8.flatMap { byte -> [UInt8] in
      byte.isASCIIDigit || byte.isASCIILetter || "-._~".utf8.contains(byte)
        ? [byte] : Array("%\(Hex.encode([byte]).uppercased())".utf8)
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// Without escapes; one that is no two hexadecimal digits stays.
  public var percentDecoded: String {
    var (bytes, rest) = ([UInt8](), Array(utf8)[...])
    while let byte = rest.popFirst() {
      if byte == UInt8(ascii: "%"), let decoded = Hex.decode(String(decoding: rest.prefix(2), as: UTF8.self)) {
        bytes += decoded
        rest = rest.dropFirst(2)
      } else {
        bytes.append(byte)
      }
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}
