import PrismBase
import PrismProtocol

/// A collector's base address, as far as delivery needs to understand it.
struct CollectorAddress: Sendable, Equatable {
  let base: String

  /// - Parameter url: as configured; validated before.
  init(_ url: String) {
    base = url.hasSuffix("/") ? String(url.dropLast()) : url
  }

  func endpoint(_ kind: RowKind) -> String { base + kind.path }

  /// On this machine: it needs no network and costs no flow.
  var isLoopback: Bool { HostAndPort.isLoopback(host) }

  /// In lower case, without brackets; empty if the address has no host.
  var host: String {
    guard let scheme = base.firstRange(of: "://") else { return "" }
    var authority = base[scheme.upperBound...].prefix { $0 != "/" && $0 != "?" && $0 != "#" }
    if let at = authority.lastIndex(of: "@") { authority = authority[authority.index(after: at)...] }
    if authority.first == "[" { return authority.dropFirst().prefix { $0 != "]" }.lowercased() }
    return authority.prefix { $0 != ":" }.lowercased()
  }
}
