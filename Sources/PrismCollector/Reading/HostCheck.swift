import PrismBase

/// Checks whether the `Host` of a request is one that this collector is meant to be asked by. A web page can let its
/// own name point to this machine (DNS rebinding), and its scripts would then read the answers. The browser still sends
/// that page's name as the `Host`.
struct HostCheck: Sendable {
  /// Names beside `localhost` and addresses in numbers.
  let names: Set<String>

  init(names: [String] = []) { self.names = Set(names.map { $0.lowercased() }) }

  /// An address in numbers is allowed: no other machine's name can stand for it.
  func allows(_ host: String?) -> Bool {
    guard let name = host.map(Self.name) else { return false }
    return name == "localhost" || names.contains(name) || Self.isAddress(name)
  }

  /// `localhost`, or a loopback address in numbers; nil is no host.
  func isLocal(_ host: String?) -> Bool { host.map { HostAndPort.isLoopback(Self.name($0)) } ?? false }

  /// Without the port and the brackets of an IPv6 address; empty for a host that can't be read.
  private static func name(_ host: String) -> String { HostAndPort.split(host)?.host.lowercased() ?? "" }

  private static func isAddress(_ name: String) -> Bool { HostAndPort.isIPv4(name) || HostAndPort.isIPv6(name) }
}
