import PrismConfig
import PrismEngine
import Testing

@testable import PrismLinux

@Suite("What the network counts as")
struct NetworkDecisionTests {
  private static func link(_ index: Int32, _ name: String, up: Bool = true, hardware: UInt16 = 1, type: String? = nil)
    -> NetworkFacts.Link
  {
    .init(index: index, name: name, isUp: up, hardwareType: hardware, deviceType: type)
  }

  @Test(
    "an interface's kind decides where no glob does",
    arguments: [
      (link(1, "eth0"), NetworkStatus.Kind.unmetered), (link(1, "wlan0", type: "wlan"), .unmetered),
      (link(1, "wwan0", hardware: 65534), .metered), (link(1, "wwp0s20u4", type: "wwan"), .metered),
      (link(1, "ppp0", hardware: 512), .metered), (link(1, "dial", hardware: 512), .metered),
      (link(1, "modem", hardware: 519), .metered), (link(1, "rmnet_data0"), .metered),
      (link(1, "tun0", hardware: 65534), .unmetered),
    ])
  func kinds(link: NetworkFacts.Link, expected: NetworkStatus.Kind) {
    let facts = NetworkFacts(links: [link], routes: [.init(family: .ipv4, linkIndex: 1, metric: 0)])
    let state = NetworkDecision.state(facts, .init())
    #expect(state.kind == expected)
    #expect(state.interface == link.name)
  }

  @Test("an unknown kind counts as network.default says")
  func unknown() {
    let facts = NetworkFacts(
      links: [Self.link(1, "tun0", hardware: 65534)], routes: [.init(family: .ipv6, linkIndex: 1, metric: 0)])
    var configuration = DaemonConfiguration.Network()
    configuration.fallback = .metered
    let state = NetworkDecision.state(facts, configuration)
    #expect(state.kind == .metered)
    #expect(
      state.reason
        == "tun0 carries the default route; a link of unknown kind counts as network.default says: metered")
  }

  private static let two = NetworkFacts(
    links: [link(1, "lo", hardware: 772), link(2, "eth0"), link(3, "wwan0", type: "wwan")],
    routes: [
      .init(family: .ipv6, linkIndex: 3, metric: 1), .init(family: .ipv4, linkIndex: 3, metric: 600),
      .init(family: .ipv4, linkIndex: 2, metric: 100),
    ])

  @Test("the lowest metric wins, IPv4 before IPv6")
  func metrics() {
    #expect(NetworkDecision.state(Self.two, .init()).interface == "eth0")
  }

  @Test("a link that is down or ignored is passed over, and the reason says so")
  func passedOver() {
    var facts = Self.two
    facts.links[1].isUp = false
    let down = NetworkDecision.state(facts, .init())
    #expect(down.kind == .metered)
    #expect(
      down.reason == "wwan0 carries the default route; mobile and dial-up links count as metered; eth0 is down")
    var configuration = DaemonConfiguration.Network()
    configuration.interfaces = [.init(glob: "eth*", counts: .ignored), .init(glob: "*", counts: .unmetered)]
    let ignored = NetworkDecision.state(Self.two, configuration)
    #expect(ignored.interface == "wwan0" && ignored.kind == .unmetered)
    configuration.interfaces = [.init(glob: "*", counts: .ignored)]
    #expect(NetworkDecision.state(Self.two, configuration).kind == .none)
  }

  @Test("the first glob that matches counts")
  func globs() {
    var configuration = DaemonConfiguration.Network()
    configuration.interfaces = [.init(glob: "eth?", counts: .metered), .init(glob: "eth0", counts: .unmetered)]
    let state = NetworkDecision.state(Self.two, configuration)
    #expect(state.kind == .metered)
    #expect(state.reason == "eth0 carries the default route; network.interfaces \"eth?\" says metered")
  }

  @Test("without a default route there is no network")
  func noRoute() {
    #expect(
      NetworkDecision.state(NetworkFacts(), .init())
        == NetworkStatus(kind: .none, interface: nil, reason: "no usable default route"))
  }
}
