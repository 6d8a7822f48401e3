import Glibc
import PrismBase
import PrismConfig
import PrismControl
import PrismProtocol

/// Whether collectors can be reached from here, while there is no daemon that could be asked.
enum ReachCheck {
  private static let connectSeconds = 5

  static func findings(_ snapshot: Snapshot) -> [Finding] {
    let urls = Dictionary(grouping: snapshot.namespaces.values.filter { $0.url != nil }) { $0.url ?? "" }
    return urls.sorted { $0.key < $1.key }.map { url, namespaces in
      let names = namespaces.map(\.name.text).sorted().joined(separator: ", ")
      return reach(url, check: "url \(names)")
    }
  }

  private static func reach(_ url: String, check: String) -> Finding {
    guard let (host, port) = hostAndPort(url) else { return Finding(check, .fault, "\(url) is no url", advice: nil) }
    var hints = addrinfo()
    hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    var list: UnsafeMutablePointer<addrinfo>?
    let code = getaddrinfo(host, port, &hints, &list)
    guard code == 0 else {
      return Finding(
        check, .fault, "\(url): \(host): \(String(cString: gai_strerror(code)))",
        advice:
          "look at the host name, the name servers (`resolvectl query \(host)`), and for a default route (`ip route`)")
    }
    defer { freeaddrinfo(list) }
    var (reason, next) = ("no address", list)
    while let address = next {
      guard let refused = connect(address.pointee) else {
        let note = url.hasPrefix("https") ? "; TLS is looked at once the daemon runs" : ""
        return Finding(check, .ok, "\(url): port \(port) of \(host) takes connections\(note)")
      }
      (reason, next) = (refused, address.pointee.ai_next)
    }
    let advice =
      reason == String(cString: strerror(ENETUNREACH))
      ? "give this machine a default route (`ip route` shows its routes)"
      : "does the collector listen there, and do firewalls let it through?"
    return Finding(check, .fault, "\(url): \(reason)", advice: advice)
  }

  /// nil: it works.
  private static func connect(_ address: addrinfo) -> String? {
    let descriptor = socket(address.ai_family, address.ai_socktype | Int32(SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { return Files.reason() }
    defer { close(descriptor) }
    var limit = timeval(tv_sec: connectSeconds, tv_usec: 0)  // of connect, too (socket(7))
    setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    if Glibc.connect(descriptor, address.ai_addr, address.ai_addrlen) == 0 { return nil }
    return errno == EINPROGRESS ? "no answer within \(connectSeconds) s" : Files.reason()
  }

  /// Of a url that the configuration's check has let through.
  static func hostAndPort(_ url: String) -> (host: String, port: String)? {
    guard let scheme = url.firstRange(of: "://") else { return nil }
    let authority = url[scheme.upperBound...].prefix { $0 != "/" }
    guard let (host, port) = HostAndPort.split(String(authority)), !host.isEmpty else { return nil }
    return (host, port ?? (url.hasPrefix("https") ? "443" : "80"))
  }
}
