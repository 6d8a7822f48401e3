/// One kind of rows of a namespace.
public struct QueueReport: ControlMessage {
  public var waiting = 0, claimed = 0, dead = 0, bytes = 0, oldestAgeSeconds = 0
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
