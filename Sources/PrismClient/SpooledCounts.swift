import CPrism

/// The counters of a `SpooledClient` since its start.
public struct SpooledCounts: Sendable, Equatable {
  /// Reports that were taken.
  public let accepted: UInt64
  /// Reports of this process that the daemon committed.
  public let stored: UInt64
  /// Reports that the daemon refused for good.
  public let refused: UInt64
  /// Reports that were not taken, since the queue was full.
  public let droppedQueue: UInt64
  /// Reports that were taken and dropped, since the spool was full or unusable.
  public let droppedSpool: UInt64
  /// Bytes of spool files that did not match their checksums.
  public let damagedBytes: UInt64
  /// Reports that wait in this process's spool files.
  public let spoolWaiting: UInt64
  /// `errno` of why there is no spool; 0: it works, or was not needed yet.
  public let spoolError: Int32

  init(_ stats: prism_stats) {
    (accepted, stored, refused) = (stats.accepted, stats.stored, stats.refused)
    (droppedQueue, droppedSpool) = (stats.dropped_queue, stats.dropped_spool)
    (damagedBytes, spoolWaiting, spoolError) = (stats.damaged_bytes, stats.spool_waiting, stats.spool_error)
  }
}
