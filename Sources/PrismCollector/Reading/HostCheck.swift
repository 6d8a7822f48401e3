import Glibc

/// Tells whether the `Host` of a request is one that this collector is meant to be asked by. A web page can let its own
/// name point to this machine (DNS rebinding), and its scripts would then read the answers; the browser still sends that
/// page's name as the `Host`.
struct HostCheck: Sendable {
  /// Names beside `localhost` and addresses in numbers.
  let names: Set<String>

  init(names: [String] = []) { self.names = Set(names.map { $0.lowercased() }) }

  /// An address in numbers is allowed: no other machine's name can stand for it.
  func allows(_ host: String?) -> Bool {
    guard let name = host.map(Self.name) else { return false }
    return name == "localhost" || names.contains(name) || Self.isAddress(name)
  }

  /// `localhost`, or a loopback address in numbers; nil is none.
  func isLocal(_ host: String?) -> Bool {
    guard let name = host.map(Self.name) else { return false }
    return name == "localhost" || name == "::1" || (name.hasPrefix("127.") && Self.isAddress(name))
  }

  /// Without the port and the brackets of an IPv6 address.
  private static func name(_ host: String) -> String {
    if host.hasPrefix("["), let end = host.firstIndex(of: "]") {
      return String(host[host.index(after: host.startIndex)..<end])
    }
    let name = host.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false).first ?? ""
    return name.lowercased()
  }

  private static func isAddress(_ name: String) -> Bool {
    var (four, six) = (in_addr(), in6_addr())
    return inet_pton(AF_INET, name, &four) == 1 || inet_pton(AF_INET6, name, &six) == 1
  }
}
