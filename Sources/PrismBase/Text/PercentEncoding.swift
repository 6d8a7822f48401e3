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
  public var percentDecoded: String { String(decoding: unescaped.bytes, as: UTF8.self) }

  /// The same; nil if an escape is no two hexadecimal digits, or the text no UTF-8.
  public var strictlyPercentDecoded: String? {
    let (bytes, isSound) = unescaped
    return isSound ? String(validating: bytes, as: UTF8.self) : nil
  }

  private var unescaped: (bytes: [UInt8], isSound: Bool) {
    var (bytes, rest, isSound) = ([UInt8](), Array(utf8)[...], true)
    while let byte = rest.popFirst() {
      if byte == UInt8(ascii: "%"), rest.count > 1, let decoded = Hex.decode(rest.prefix(2)) {
        bytes += decoded
        rest = rest.dropFirst(2)
      } else {
        isSound = isSound && byte != UInt8(ascii: "%")
        bytes.append(byte)
      }
    }
    return (bytes, isSound)
  }
}
