/// How many packets of one namespace and kind may be on their way at a time: one more with every receipt, half after
/// an overload (docs/delivery.md, "The window").
struct SendWindow: Sendable, Equatable {
  /// Of the bodies on their way, where there are several.
  static let bodyBytesMax = 4 * 1_048_576

  /// 1 to 64.
  private(set) var packets = 1
  /// Packets that fail together are one overload.
  private var hasShrunk = false

  /// A packet was accepted. - Parameter most: what receiver and configuration allow.
  mutating func open(most: Int) {
    packets = max(1, min(packets + 1, most))
    hasShrunk = false
  }

  mutating func shrink() {
    guard !hasShrunk else { return }
    packets = max(1, packets / 2)
    hasShrunk = true
  }
}
