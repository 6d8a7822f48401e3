import PrismBase

/// Checks whether the `Host` of a request is one that this server is meant to be asked by. A web page can let its own name
/// point to this machine (DNS rebinding), and its scripts would then read the answers. The browser still sends that page's
/// name as the `Host`.
public struct HostCheck: Sendable {
  private let names: Set<String>

  /// - Parameter names: beside `localhost` and addresses in numbers.
  public init(names: [String] = []) { self.names = Set(names.map { $0.lowercased() }).subtracting([""]) }

  /// An address in numbers is allowed: no other machine's name can stand for it.
  public func allows(_ host: String?) -> Bool {
    guard let name = Self.name(host) else { return false }
    return name == "localhost" || names.contains(name) || HostAndPort.isIPv4(name) || HostAndPort.isIPv6(name)
  }

  /// `localhost`, or a loopback address in numbers; nil is no host.
  public static func isLocal(_ host: String?) -> Bool { name(host).map(HostAndPort.isLoopback) ?? false }

  /// Without the port and the brackets of an IPv6 address; nil for a host that can't be read.
  private static func name(_ host: String?) -> String? { host.flatMap { HostAndPort.split($0)?.host.lowercased() } }
}
