import PrismConfig
import PrismPacket
import PrismProtocol

/// A key as its blocks are counted: by its bytes. The id is for people.
struct CountedKey: Sendable, Equatable {
  var id: String
  var fingerprint: KeyFingerprint

  init(id: String, secret: Secret) throws(PacketError) {
    (self.id, fingerprint) = (id, try KeyFingerprint(of: secret))
  }

  /// The keys of a configuration, each of which can encrypt.
  static func all(of daemon: DaemonConfiguration) -> [CountedKey] {
    // One that can't be named encrypts nothing either.
    daemon.keys.compactMap { try? CountedKey(id: $0.id, secret: $0.secret) }
  }
}

extension Engine {
  /// The use of each configured key, in the order of the configuration.
  nonisolated var keyReports: [(key: CountedKey, report: KeyReport)] {
    CountedKey.all(of: hub.current.daemon).map { ($0, parts.keys.report(of: $0.fingerprint)) }
  }
}
