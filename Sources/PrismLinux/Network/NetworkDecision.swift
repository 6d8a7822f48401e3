import Glibc
import PrismConfig
import PrismEngine

/// From what the kernel tells and what is configured to what the network counts as, and why. Pure.
///
/// The default route decides: IPv4 before IPv6, the lowest metric first, over a link that is up and isn't ignored. Its
/// interface counts as the first glob of `network.interfaces` that matches it says; else by its kind.
enum NetworkDecision {
  static func state(_ facts: NetworkFacts, _ configuration: DaemonConfiguration.Network) -> NetworkStatus {
    var passedOver: [String] = []
    for link in linksInOrder(facts) {
      let rule = configuration.interfaces.first { matches($0.glob, link.name) }
      if rule?.counts == .ignored {
        passedOver.append("\(link.name) is ignored by network.interfaces \"\(rule?.glob ?? "")\"")
      } else if !link.isUp {
        passedOver.append("\(link.name) is down")
      } else {
        let (kind, why) = kind(of: link, rule, configuration.fallback)
        let reasons = ["\(link.name) carries the default route", why] + passedOver
        return NetworkStatus(kind: kind, interface: link.name, reason: reasons.joined(separator: "; "))
      }
    }
    let reasons = ["no usable default route"] + passedOver
    return NetworkStatus(kind: .none, interface: nil, reason: reasons.joined(separator: "; "))
  }

  /// The links of the default routes, the preferred first, each once.
  private static func linksInOrder(_ facts: NetworkFacts) -> [NetworkFacts.Link] {
    let routes = facts.routes.sorted {
      ($0.family.rawValue, $0.metric, $0.linkIndex) < ($1.family.rawValue, $1.metric, $1.linkIndex)
    }
    var seen: Set<Int32> = []
    return routes.filter { seen.insert($0.linkIndex).inserted }.compactMap { route in
      facts.links.first { $0.index == route.linkIndex }
    }
  }

  private static func kind(
    of link: NetworkFacts.Link, _ rule: DaemonConfiguration.InterfaceRule?, _ fallback: DaemonConfiguration.NetworkClass
  ) -> (NetworkStatus.Kind, String) {
    if let rule {
      let kind: NetworkStatus.Kind = rule.counts == .metered ? .metered : .unmetered
      return (kind, "network.interfaces \"\(rule.glob)\" says \(kind.rawValue)")
    }
    switch medium(of: link) {
    case .mobile: return (.metered, "mobile and dial-up links count as metered")
    case .wifi: return (.unmetered, "Wi-Fi counts as unmetered")
    case .ethernet: return (.unmetered, "Ethernet counts as unmetered")
    case .unknown:
      let kind: NetworkStatus.Kind = fallback == .metered ? .metered : .unmetered
      return (kind, "a link of unknown kind counts as network.default says: \(kind.rawValue)")
    }
  }

  private enum Medium { case mobile, wifi, ethernet, unknown }

  private static func medium(of link: NetworkFacts.Link) -> Medium {
    let (ethernet, ppp, rawIP): (UInt16, UInt16, UInt16) = (1, 512, 519)  // ARPHRD_*; raw IP is what modems speak
    let mobileNames = ["wwan*", "ppp*", "rmnet*"]
    if link.deviceType == "wwan" || [ppp, rawIP].contains(link.hardwareType) { return .mobile }
    if mobileNames.contains(where: { matches($0, link.name) }) { return .mobile }
    if link.deviceType == "wlan" { return .wifi }
    return link.hardwareType == ethernet ? .ethernet : .unknown
  }

  private static func matches(_ glob: String, _ name: String) -> Bool { fnmatch(glob, name, 0) == 0 }
}

/// The kernel's facts on routes and interfaces, as far as the decision needs them.
struct NetworkFacts: Sendable, Equatable {
  struct Link: Sendable, Equatable {
    var index: Int32
    var name: String
    /// Switched on, and connected to something (IFF_UP, IFF_RUNNING).
    var isUp: Bool
    /// ARPHRD_*: 1 Ethernet (and Wi-Fi), 512 PPP.
    var hardwareType: UInt16
    /// `DEVTYPE` of `/sys/class/net/NAME/uevent`: `wlan`, `wwan`, `bridge`…; nil for plain Ethernet and most others.
    var deviceType: String?
  }

  struct DefaultRoute: Sendable, Equatable {
    enum Family: Int, Sendable { case ipv4, ipv6 }
    var family: Family
    var linkIndex: Int32
    /// The lowest wins.
    var metric: UInt32
  }

  var links: [Link] = []
  var routes: [DefaultRoute] = []
}
