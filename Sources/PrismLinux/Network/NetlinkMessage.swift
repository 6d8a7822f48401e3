/// One message of a netlink socket (netlink(7)), and the attributes within it. Lengths that don't fit end the reading.
struct NetlinkMessage: Equatable {
  static let error: UInt16 = 2, done: UInt16 = 3
  /// The kernel's tables changed while it listed them: the list may have gaps.
  static let interruptedFlag: UInt16 = 0x10

  var type: UInt16, flags: UInt16, sequence: UInt32
  var payload: ArraySlice<UInt8>

  /// All messages of one datagram.
  static func all(in bytes: ArraySlice<UInt8>) -> [NetlinkMessage] {
    var messages: [NetlinkMessage] = []
    var rest = bytes
    while let size = rest.netlinkInteger(at: 0, UInt32.self), size >= 16, size <= rest.count {
      let message = rest.prefix(Int(size))
      messages.append(
        NetlinkMessage(
          type: message.netlinkInteger(at: 4) ?? 0, flags: message.netlinkInteger(at: 6) ?? 0,
          sequence: message.netlinkInteger(at: 8) ?? 0, payload: message.dropFirst(16)))
      rest = rest.dropFirst(aligned(Int(size)))
    }
    return messages
  }

  /// The attributes that follow `headBytes` of the payload: type to contents. A type's nested flag is left out.
  func attributes(after headBytes: Int) -> [UInt16: ArraySlice<UInt8>] {
    var result: [UInt16: ArraySlice<UInt8>] = [:]
    var rest = payload.dropFirst(Self.aligned(headBytes))
    while let size = rest.netlinkInteger(at: 0, UInt16.self), size >= 4, size <= rest.count,
      let type = rest.netlinkInteger(at: 2, UInt16.self)
    {
      result[type & 0x3FFF] = rest.prefix(Int(size)).dropFirst(4)
      rest = rest.dropFirst(Self.aligned(Int(size)))
    }
    return result
  }

  private static func aligned(_ size: Int) -> Int { (size + 3) & ~3 }
}

extension ArraySlice<UInt8> {
  /// In the machine's own byte order, as netlink has it; nil past the end.
  func netlinkInteger<Value: FixedWidthInteger>(at offset: Int, _: Value.Type = Value.self) -> Value? {
    guard offset + MemoryLayout<Value>.size <= count else { return nil }
    return withUnsafeBytes { $0.loadUnaligned(fromByteOffset: offset, as: Value.self) }
  }
}
