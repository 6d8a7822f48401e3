import PrismBase

/// Both clocks, read at once.
struct Instant: Sendable, Equatable {
  var uptime: Duration
  var unixMilliseconds: Int64

  init(uptime: Duration, unixMilliseconds: Int64) {
    (self.uptime, self.unixMilliseconds) = (uptime, unixMilliseconds)
  }

  init(_ time: any TimeSource) { self.init(uptime: time.uptime, unixMilliseconds: time.unixMilliseconds) }
}
