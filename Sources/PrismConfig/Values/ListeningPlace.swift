import PrismBase

/// An address that a program opens, with the key that names it. Two that are equal can't both be opened.
struct ListeningPlace: Sendable {
  enum Kind: Sendable { case unix, tcp, udp }

  let key: String
  private let kind: Kind
  /// nil: it is not opened.
  private let address: String?

  init(_ key: String, _ kind: Kind, _ address: String?) { (self.key, self.kind, self.address) = (key, kind, address) }

  /// The places that an earlier one takes, with that one.
  static func taken(of places: [ListeningPlace]) -> [(place: ListeningPlace, by: ListeningPlace)] {
    places.indices.compactMap { index in
      places[..<index].first { $0.takes(places[index]) }.map { (places[index], $0) }
    }
  }

  /// The fault of a key that has the place of another one.
  func fault(beside other: ListeningPlace) -> String {
    "is \((address ?? "").shownInFault), where \(other.key) listens, too; give each its own"
  }

  private func takes(_ other: ListeningPlace) -> Bool {
    guard kind == other.kind, let address, let second = other.address else { return false }
    if kind == .unix { return FilePath.plain(address) == FilePath.plain(second) }
    guard let (host, port) = HostAndPort.split(address), let (otherHost, otherPort) = HostAndPort.split(second) else {
      return false
    }
    // Port 0 is any that is free; 0.0.0.0 and :: are all addresses of their family.
    let isOneFamily = host.contains(":") == otherHost.contains(":")
    let isEvery = isOneFamily && [host, otherHost].contains { $0 == "0.0.0.0" || $0 == "::" }
    return port == otherPort && port != "0" && (host == otherHost || isEvery)
  }
}

extension DaemonConfiguration {
  var listeningPlaces: [ListeningPlace] {
    [
      ListeningPlace("ingest.socket", .unix, ingest.socket), ListeningPlace("control.socket", .unix, control.socket),
      ListeningPlace("forward.socket", .unix, forward.socket), ListeningPlace("statsd.socket", .unix, statsd.socket),
      ListeningPlace("syslog.socket", .unix, syslog.socket),
      ListeningPlace("metrics.listen", .tcp, metricsListen), ListeningPlace("otlp.listen", .tcp, otlp.listen),
      ListeningPlace("forward.listen", .tcp, forward.listen), ListeningPlace("syslog.listen", .tcp, syslog.listen),
      ListeningPlace("statsd.listen", .udp, statsd.listen), ListeningPlace("syslog.listen", .udp, syslog.listen),
    ]
  }
}
