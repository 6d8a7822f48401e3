/// One kind of rows of a namespace.
public struct QueueReport: ControlMessage {
  /// Rows of one kind by state, their bytes, and the age of the oldest row that waits or is in flight.
  public var waiting = 0, claimed = 0, dead = 0, bytes = 0, oldestAgeSeconds = 0
  /// The counters of all rows that were ever stored.
  public var ledger = Ledger()
  /// Packets since the daemon's start, by what came of them.
  public var packets = NamedValues<Int>()
  /// Of packets since the daemon's start: before compression, and as sent.
  public var bytesRaw = 0, bytesSent = 0

  public init() {}

  public static let fields: [ControlField<QueueReport>] = [
    .init("waiting", \.waiting), .init("claimed", \.claimed), .init("dead", \.dead), .init("bytes", \.bytes),
    .init("oldestAgeSeconds", \.oldestAgeSeconds), .init("ledger", \.ledger), .init("packets", \.packets),
    .init("bytesRaw", \.bytesRaw), .init("bytesSent", \.bytesSent),
  ]
}
