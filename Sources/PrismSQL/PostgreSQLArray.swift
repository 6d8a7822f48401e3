/// Arrays of one dimension: in text form as a parameter, in binary form in a result.
public enum PostgreSQLArray {
  /// `{"a",NULL}`.
  public static func text(_ values: [String?]) -> String {
    var text = [UInt8(ascii: "{")]
    for (index, value) in values.enumerated() {
      if index > 0 { text.append(UInt8(ascii: ",")) }
      guard let value else {
        text += "NULL".utf8
        continue
      }
      text.append(UInt8(ascii: "\""))
      for byte in value.utf8 {
        if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") { text.append(UInt8(ascii: "\\")) }
        text.append(byte)
      }
      text.append(UInt8(ascii: "\""))
    }
    text.append(UInt8(ascii: "}"))
    return String(decoding: text, as: UTF8.self)
  }

  /// The numbers of a `bigint[]`: a head of 20 bytes, then a length and a number each.
  public static func numbers(_ bytes: UnsafeRawBufferPointer) -> [Int64] {
    stride(from: 20, to: bytes.count, by: 12).map { at in
      Int64(bitPattern: bytes[at + 4..<at + 12].reduce(0) { $0 << 8 | UInt64($1) })
    }
  }
}
