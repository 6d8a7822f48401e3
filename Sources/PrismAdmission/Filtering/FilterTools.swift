/// The state that the filters of all types share: the device's secret, and the reports that each user has sent. One for the
/// life of the daemon, so that a reload forgets neither.
public final class FilterTools: Sendable {
  /// A keyed hash of the value of a field; nil if it can't be made.
  public typealias KeyedHash = @Sendable ([UInt8]) -> [UInt8]?

  let hash: KeyedHash
  let rates = RateLimits()

  /// - Parameter hash: of the device's secret. Where it gives nothing, a value is masked in its place.
  public init(hash: @escaping KeyedHash = { _ in nil }) { self.hash = hash }
}
