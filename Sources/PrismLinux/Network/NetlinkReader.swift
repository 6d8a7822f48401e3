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
