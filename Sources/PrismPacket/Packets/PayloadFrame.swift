/// The frame of a payload packet, cut into its blocks (docs/packet.md, "The two bodies").
struct PayloadFrame {
  let metaBlock: ArraySlice<UInt8>
  let payloadBlocks: [ArraySlice<UInt8>]

  /// The body of a payload packet.
  /// - Throws: `frameOverflow` if the meta block or the count of payloads is more than the header can say.
  static func bytes(metaBlock: [UInt8], payloadBlocks: [[UInt8]]) throws(PacketError) -> [UInt8] {
    guard let metaLength = UInt16(exactly: metaBlock.count), let count = UInt8(exactly: payloadBlocks.count) else {
      throw .frameOverflow
    }
    var result: [UInt8] = []
    result.reserveCapacity(payloadBlocks.reduce(3 + metaBlock.count) { $0 + 4 + $1.count })
    result.append(bigEndian: metaLength)
    result.append(count)
    for block in payloadBlocks {
      guard let length = UInt32(exactly: block.count) else { throw .frameOverflow }
      result.append(bigEndian: length)
    }
    result += metaBlock
    for block in payloadBlocks { result += block }
    return result
  }

  /// - Throws: `shortHeader` where the header is cut, `lengthMismatch` where the lengths don't add up to the body exactly.
  init(parsing body: [UInt8]) throws(PacketError) {
    guard body.count >= 3 else { throw .shortHeader }
    let metaBytes = Int(body[0]) << 8 | Int(body[1])
    let count = Int(body[2])
    let headerBytes = 3 + 4 * count
    guard body.count >= headerBytes else { throw .shortHeader }
    let lengths = (0..<count).map { index in
      body[(3 + 4 * index)..<(7 + 4 * index)].reduce(0) { $0 << 8 | Int($1) }
    }
    // 255 lengths of 32 bits can't overflow the sum.
    guard headerBytes + metaBytes + lengths.reduce(0, +) == body.count else { throw .lengthMismatch }
    metaBlock = body[headerBytes..<(headerBytes + metaBytes)]
    var start = headerBytes + metaBytes
    payloadBlocks = lengths.map { length in
      defer { start += length }
      return body[start..<(start + length)]
    }
  }
}

extension [UInt8] {
  fileprivate mutating func append(bigEndian value: some FixedWidthInteger) {
    for shift in stride(from: value.bitWidth - 8, through: 0, by: -8) {
      append(UInt8(truncatingIfNeeded: value >> shift))
    }
  }
}
