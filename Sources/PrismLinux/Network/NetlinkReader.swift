import CLinux
import Glibc
import PrismBase

/// Asks the kernel for its links and default routes. Blocks, for milliseconds; at most a second a question.
enum NetlinkReader {
  /// - Throws: why the kernel did not answer.
  static func read() throws(NetlinkError) -> NetworkFacts {
    let descriptor = prism_netlink_socket(0)
    guard descriptor >= 0 else { throw NetlinkError("open a netlink socket", errno) }
    defer { close(descriptor) }
    var facts = NetworkFacts()
    for message in try list(UInt16(RTM_GETLINK), descriptor) {
      if let link = NetworkFacts.link(message, deviceType: deviceType) { facts.links.append(link) }
    }
    for message in try list(UInt16(RTM_GETROUTE), descriptor) {
      if let route = NetworkFacts.defaultRoute(message) { facts.routes.append(route) }
    }
    return facts
  }

  /// Asks again when the kernel says that its list has gaps.
  private static func list(_ type: UInt16, _ descriptor: Int32) throws(NetlinkError) -> [NetlinkMessage] {
    for attempt in 1...5 {
      let sequence = UInt32(type) << 8 | UInt32(attempt)
      guard prism_netlink_request_dump(descriptor, type, sequence) > 0 else { throw NetlinkError("ask", errno) }
      if let messages = try answers(to: sequence, descriptor) { return messages }
    }
    throw NetlinkError("list what changes all the time", EAGAIN)
  }

  /// nil when the list was interrupted.
  private static func answers(to sequence: UInt32, _ descriptor: Int32) throws(NetlinkError) -> [NetlinkMessage]? {
    var result: [NetlinkMessage] = []
    var isWhole = true
    var buffer = [UInt8](repeating: 0, count: 64 * 1024)
    while true {
      let count = recv(descriptor, &buffer, buffer.count, 0)
      if count < 0 && errno == EINTR { continue }
      guard count > 0 else { throw NetlinkError("read", errno) }
      for message in NetlinkMessage.all(in: buffer[..<count]) where message.sequence == sequence {
        if message.flags & NetlinkMessage.interruptedFlag != 0 { isWhole = false }
        switch message.type {
        case NetlinkMessage.done: return isWhole ? result : nil
        case NetlinkMessage.error: throw NetlinkError("list", -(message.payload.netlinkInteger(at: 0) ?? -EIO))
        default: result.append(message)
        }
      }
    }
  }

  private static func deviceType(of interface: String) -> String? {
    // Not there in a container without /sys: then the hardware type decides alone.
    guard let bytes = try? SmallFile.read("/sys/class/net/\(interface)/uevent") else { return nil }
    let lines = bytes.split(separator: UInt8(ascii: "\n")).map { String(decoding: $0, as: UTF8.self) }
    return lines.first { $0.hasPrefix("DEVTYPE=") }.map { String($0.dropFirst("DEVTYPE=".count)) }
  }
}

/// Why the kernel's network tables can't be read.
struct NetlinkError: Error, Equatable, CustomStringConvertible {
  let description: String
  init(_ what: String, _ code: Int32) { description = "cannot \(what): \(String(cString: strerror(code)))" }
}

/// One message of a netlink socket (netlink(7)), and the attributes within it. Lengths that don't fit end the reading.
struct NetlinkMessage: Equatable {
  static let error: UInt16 = 2, done: UInt16 = 3
  /// The kernel's tables changed while it listed them: the list may have gaps.
  static let interruptedFlag: UInt16 = 0x10

  var type: UInt16, flags: UInt16, sequence: UInt32
  var payload: ArraySlice<UInt8>

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

extension NetworkFacts {
  /// A link from an RTM_NEWLINK message (rtnetlink(7)); nil when it is another message or not whole.
  static func link(_ message: NetlinkMessage, deviceType: (String) -> String?) -> Link? {
    let (nameAttribute, headBytes): (UInt16, Int) = (3, 16)  // IFLA_IFNAME; struct ifinfomsg
    guard message.type == UInt16(RTM_NEWLINK),
      let hardwareType = message.payload.netlinkInteger(at: 2, UInt16.self),
      let index = message.payload.netlinkInteger(at: 4, Int32.self),
      let flags = message.payload.netlinkInteger(at: 8, UInt32.self),
      let nameBytes = message.attributes(after: headBytes)[nameAttribute]
    else { return nil }
    let (up, running): (UInt32, UInt32) = (1 << 0, 1 << 6)  // IFF_UP, IFF_RUNNING
    let name = String(decoding: nameBytes.prefix { $0 != 0 }, as: UTF8.self)
    return Link(
      index: index, name: name, isUp: flags & up != 0 && flags & running != 0, hardwareType: hardwareType,
      deviceType: deviceType(name))
  }

  /// A default route of the main table from an RTM_NEWROUTE message; nil for every other message.
  static func defaultRoute(_ message: NetlinkMessage) -> DefaultRoute? {
    let bytes = Array(message.payload.prefix(12))  // struct rtmsg
    guard message.type == UInt16(RTM_NEWROUTE), bytes.count == 12 else { return nil }
    let (destinationBits, table, type) = (bytes[1], bytes[4], bytes[7])
    let (mainTable, unicast): (UInt8, UInt8) = (254, 1)
    guard destinationBits == 0, table == mainTable, type == unicast, let family = family(bytes[0]) else { return nil }
    let attributes = message.attributes(after: 12)
    let (outAttribute, metricAttribute, multipathAttribute): (UInt16, UInt16, UInt16) = (4, 6, 9)  // RTA_*
    // Of several next hops (struct rtnexthop) the first one speaks for all.
    let link: Int32? =
      attributes[outAttribute]?.netlinkInteger(at: 0) ?? attributes[multipathAttribute]?.netlinkInteger(at: 4)
    guard let link else { return nil }
    return DefaultRoute(
      family: family, linkIndex: link, metric: attributes[metricAttribute]?.netlinkInteger(at: 0) ?? 0)
  }

  private static func family(_ number: UInt8) -> DefaultRoute.Family? {
    switch Int32(number) {
    case AF_INET: .ipv4
    case AF_INET6: .ipv6
    default: nil
    }
  }
}
