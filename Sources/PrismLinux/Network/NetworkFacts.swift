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
