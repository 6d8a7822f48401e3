import Testing

@testable import PrismLinux

@Suite("Netlink messages")
struct NetlinkMessageTests {
  private func bytes(_ numbers: any FixedWidthInteger...) -> [UInt8] {
    numbers.flatMap { number in withUnsafeBytes(of: number) { Array($0) } }
  }

  private func message(_ type: UInt16, _ payload: [UInt8]) -> [UInt8] {
    bytes(UInt32(16 + payload.count), type, UInt16(2), UInt32(7), UInt32(0)) + payload
  }

  private func route(bits: UInt8 = 0, table: UInt8 = 254, type: UInt8 = 1, _ attributes: [UInt8]) -> [UInt8] {
    message(24, [2, bits, 0, 0, table, 3, 0, type, 0, 0, 0, 0] + attributes)
  }

  private func parse(_ bytes: [UInt8]) throws -> NetlinkMessage {
    try #require(NetlinkMessage.all(in: bytes[...]).first)
  }

  @Test("a default route is read with its interface and metric")
  func defaultRoute() throws {
    let attributes = bytes(UInt16(8), UInt16(4), Int32(5), UInt16(8), UInt16(6), UInt32(100))
    let expected = NetworkFacts.DefaultRoute(family: .ipv4, linkIndex: 5, metric: 100)
    #expect(NetworkFacts.defaultRoute(try parse(route(attributes))) == expected)
    let hops = bytes(UInt16(12), UInt16(9), UInt16(8), UInt16(0), Int32(5))
    #expect(NetworkFacts.defaultRoute(try parse(route(hops)))?.linkIndex == 5)
  }

  @Test("a route of another table, destination or type is no default route, nor is one without an interface")
  func otherRoutes() throws {
    let out = bytes(UInt16(8), UInt16(4), Int32(5))
    for other in [route(bits: 24, out), route(table: 255, out), route(type: 7, out), route([])] {
      #expect(NetworkFacts.defaultRoute(try parse(other)) == nil)
    }
  }

  @Test("wrong lengths end the reading, with the bytes cut at any point")
  func lies() {
    let whole = route(bytes(UInt16(8), UInt16(4), Int32(5), UInt16(200), UInt16(6), UInt32(100)))
    for count in 0..<whole.count { #expect(NetlinkMessage.all(in: whole[..<count]).isEmpty) }
    #expect(NetlinkMessage.all(in: whole[...]).first.flatMap(NetworkFacts.defaultRoute)?.metric == 0)
    for position in whole.indices {
      for value: UInt8 in [0, 1, 3, 4, 15, 16, 127, 255] {
        var bent = whole
        bent[position] = value
        for message in NetlinkMessage.all(in: bent[...]) {
          _ = NetworkFacts.defaultRoute(message)
          _ = NetworkFacts.link(message) { _ in nil }
        }
      }
    }
  }
}
