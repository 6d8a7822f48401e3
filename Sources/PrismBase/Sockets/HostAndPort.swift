import Glibc

/// Hosts and ports as text: `HOST`, `HOST:PORT`, `[ADDRESS]:PORT`.
public enum HostAndPort {
  /// Takes `host`, `host:port`, `[address]` or `[address]:port` apart. nil for another text.
  public static func split(_ text: String) -> (host: String, port: String?)? {
    if text.hasPrefix("[") {
      guard let end = text.firstIndex(of: "]") else { return nil }
      let rest = text[text.index(after: end)...]
      guard rest.isEmpty || rest.hasPrefix(":") else { return nil }
      let host = String(text[text.index(after: text.startIndex)..<end])
      return (host, rest.isEmpty ? nil : String(rest.dropFirst()))
    }
    let parts = text.split(separator: ":", omittingEmptySubsequences: false)
    guard parts.count <= 2 else { return nil }
    return (String(parts[0]), parts.count == 2 ? String(parts[1]) : nil)
  }

  /// A port of 1 to 65535; nil for another text.
  public static func port(_ text: String) -> Int? {
    guard (1...5).contains(text.utf8.count),
      text.utf8.allSatisfy(\.isASCIIDigit)
    else { return nil }
    return Int(text).flatMap { (1...65_535).contains($0) ? $0 : nil }
  }

  /// Whether a text is an IPv4 address in numbers.
  public static func isIPv4(_ text: String) -> Bool {
    var address = in_addr()
    return inet_pton(AF_INET, text, &address) == 1
  }

  /// Whether a text is an IPv6 address, without brackets.
  public static func isIPv6(_ text: String) -> Bool {
    var address = in6_addr()
    return inet_pton(AF_INET6, text, &address) == 1
  }

  /// Whether a host is this machine: `localhost`, `::1`, `127.0.0.0/8`.
  public static func isLoopback(_ host: String) -> Bool {
    if host == "localhost" || host == "::1" { return true }
    var address = in_addr()
    return inet_pton(AF_INET, host, &address) == 1 && UInt32(bigEndian: address.s_addr) >> 24 == 127
  }
}
