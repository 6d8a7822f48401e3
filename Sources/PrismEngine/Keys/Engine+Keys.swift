import PrismConfig
import PrismProtocol

extension Engine {
  /// The use of each configured key, in the order of the configuration.
  nonisolated var keyReports: [(key: CountedKey, report: KeyReport)] {
    CountedKey.all(of: hub.current.daemon).map { ($0, parts.keys.report(of: $0.fingerprint)) }
  }
}
