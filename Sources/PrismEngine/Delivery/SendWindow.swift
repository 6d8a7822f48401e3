import PrismProtocol

/// How many packets of one namespace and kind may be on their way at a time (docs/delivery.md, "The window"). The window
/// opens with receipts while the line has room, closes while packets wait in its queue, and halves after an overload.
struct SendWindow: Sendable, Equatable {
  /// Of the bodies on their way, where there are several.
  static let bodyBytesMax = 4 * 1_048_576
  /// A queue of the line closes the window to this at most.
  static let queueFloor = 2

  /// 1 to 64.
  private(set) var packets = 1
  private(set) var line = LineGauge()
  /// Packets that fail together are one overload.
  private var hasShrunk = false
  /// A receipt opened it, or a failure closed it.
  private var hasMoved = false

  /// A packet was accepted. - Parameter most: what receiver and configuration allow. - Parameter reading: of its
  /// connection; nil if unknown. - Parameter now: on the uptime clock.
  mutating func open(most: Int, _ reading: LineReading? = nil, bodyBytes: Int = 0, now: Duration = .zero) {
    switch reading.map({ line.take($0, window: packets, now: now) }) ?? .room {
    case .room: packets += hasMoved ? 1 : max(1, line.packets(afterFirst: bodyBytes))
    case .overfull(let fewer): packets = max(fewer, Self.queueFloor)
    case .outdated: packets = 1
    case .full, .unclear: break
    }
    packets = max(1, min(packets, most))
    (hasShrunk, hasMoved) = (false, hasMoved || most > 1)
  }

  mutating func shrink() {
    guard !hasShrunk else { return }
    packets = max(1, packets / 2)
    (hasShrunk, hasMoved) = (true, true)
  }

  /// Packets go over another network from now on. - Parameter sending: those that are on their way.
  mutating func networkChanged(sending: Int) { line.forget(sending: sending) }
}
