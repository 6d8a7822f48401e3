import PrismProtocol

/// Tells from the round trips of a receiver's connections whether packets wait in a queue of the line
/// (docs/delivery.md, "The window"). Lost segments and a slow receiver do not lengthen a round trip for long.
struct LineGauge: Sendable, Equatable {
  /// The meaning of a receipt for the window.
  enum Finding: Sendable, Equatable {
    /// The line carries more than the window.
    case room
    case full
    /// More packets wait in the queue than are needed to keep the line busy. `packets`: the window that is enough.
    case overfull(packets: Int)
    /// Nothing: the packet left under an earlier window, or the others of this round are still on their way.
    case unclear
    /// The least round trip is old, and only a packet that goes alone can measure it again.
    case outdated
  }

  /// A shorter queue is harmless (RFC 6817, section 2.5).
  static let queueAllowed: Duration = .milliseconds(100)
  /// Packets that may wait in the queue, and that keep the line busy between two receipts.
  static let queuedPackets = 1.0...3.0
  /// After this time with a queue, the route may have become longer. The kernel forgets its least after 5 minutes.
  static let leastAgeMax: Duration = .seconds(360)
  /// TCP's first flight. A smaller packet shows nothing about the line's rate.
  static let firstFlightBytes = 10 * 1_448

  /// Of the last receipt; nil if unknown.
  private(set) var roundTrip: Duration?
  /// The round trip without a queue; nil if unknown.
  private(set) var least: Duration?
  /// When a round trip was near the least.
  private var confirmedAt: Duration = .zero
  /// Receipts of packets that left under an earlier window.
  private var outdatedReceipts = 0
  /// Receipts in a row that saw a queue, and the least of their round trips.
  private var queuedInRow = 0, leastInRow: Duration = .zero
  /// Receipts in a row that saw no queue.
  private var freeInRow = 0
  /// All receipts of one window saw a queue: from then on the window opens by one with a whole window of receipts.
  private var wasFull = false

  /// - Parameter window: under which the packet left. - Parameter now: on the uptime clock.
  mutating func take(_ reading: LineReading, window: Int, now: Duration) -> Finding {
    guard outdatedReceipts == 0 else {
      outdatedReceipts -= 1
      return .unclear
    }
    let newLeast = min(reading.least, reading.roundTrip, least ?? reading.least)
    if newLeast != least { confirmedAt = now }
    (roundTrip, least) = (reading.roundTrip, newLeast)
    if reading.roundTrip - newLeast <= Self.queueAllowed {
      (confirmedAt, queuedInRow, freeInRow) = (now, 0, freeInRow + 1)
      guard !wasFull || freeInRow >= window else { return .unclear }
      freeInRow = 0
      return .room
    }
    freeInRow = 0
    if now - confirmedAt >= Self.leastAgeMax {
      forget(sending: window - 1)
      return .outdated
    }
    leastInRow = queuedInRow == 0 ? reading.roundTrip : min(leastInRow, reading.roundTrip)
    queuedInRow += 1
    // A queue delays all connections. A single long round trip may be a lost segment's.
    guard queuedInRow >= window else { return .full }
    queuedInRow = 0
    return find(window, least: newLeast)
  }

  private mutating func find(_ window: Int, least: Duration) -> Finding {
    let onLine = Double(window) * (least / leastInRow)
    if Double(window) < onLine + Self.queuedPackets.lowerBound { return .room }
    wasFull = true
    guard Double(window) > onLine + Self.queuedPackets.upperBound else { return .full }
    outdatedReceipts = window - 1
    return .overfull(packets: Int(onLine + (Self.queuedPackets.lowerBound + Self.queuedPackets.upperBound) / 2))
  }

  /// The packets that the line carries at a time, after the first one of `bodyBytes`. Its last flight was two thirds of it, and
  /// lengthened the smoothed round trip by about half of the time that this took on the line.
  func packets(afterFirst bodyBytes: Int) -> Int {
    guard let roundTrip, let least, bodyBytes > Self.firstFlightBytes else { return 1 }
    return Int(least / (max(roundTrip - least, .microseconds(1)) * 3))
  }

  /// The next readings are of another network, or of a route that may be longer. - Parameter sending: packets that are on
  /// their way.
  mutating func forget(sending: Int) {
    self = LineGauge()
    outdatedReceipts = sending
  }
}
