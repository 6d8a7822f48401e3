import PrismProtocol

/// The reports of one namespace that were answered without a row of their own, through restarts. They change in the same
/// transaction as the rows that came with them, and are a note of the namespace.
public struct FilterCounts: Sendable, Equatable {
  static let key = "filtered"

  /// Left out by the `sample` of their type.
  public var sampled = 0
  /// Counted on the row of an equal report, by the `collapse` of their type.
  public var collapsed = 0

  /// Nothing was left out.
  public init() {}

  /// - Parameter note: as `note` gives it; what can't be read counts 0.
  init(note: [UInt8]) {
    let value = try? JSONValue(parsing: note)
    sampled = value?["sampled"]?.int ?? 0
    collapsed = value?["collapsed"]?.int ?? 0
  }

  var note: [UInt8] { (["sampled": .int(sampled), "collapsed": .int(collapsed)] as JSONValue).bytes }

  mutating func add(_ other: Self) {
    sampled += other.sampled
    collapsed += other.collapsed
  }
}
