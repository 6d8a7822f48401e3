import CLinux
import Glibc

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
