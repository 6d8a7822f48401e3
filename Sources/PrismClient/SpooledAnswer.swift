import CPrism
public import PrismProtocol

/// The result for a report that `SpooledClient` took.
public enum SpooledAnswer: Sendable, Equatable {
  /// The daemon has committed it.
  case stored(reportID: String)
  /// It is in memory and will be sent; a crash of the program loses it.
  case queued(reportID: String)
  /// It is in the spool on disk and will be sent, by this program or a later one.
  case spooled(reportID: String)
  /// The daemon refused it for good.
  case refused(reportID: String, Refusal)
  /// It was not kept: the queue was full, and the spool was full or unusable.
  case dropped
  /// It was not taken: the text says why.
  case rejected(String)

  init(_ result: prism_result, reportID: String, code: String, message: String) {
    self =
      switch result {
      case PRISM_STORED: .stored(reportID: reportID)
      case PRISM_QUEUED: .queued(reportID: reportID)
      case PRISM_SPOOLED: .spooled(reportID: reportID)
      case PRISM_REFUSED: .refused(reportID: reportID, Refusal(code: code, message: message, retryMilliseconds: nil))
      case PRISM_DROPPED: .dropped
      default: .rejected(String(cString: prism_result_text(result)))
      }
  }
}

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

/// Reports that a `SpooledClient` dropped.
public struct SpooledLoss: Sendable, Equatable {
  /// Why they are lost.
  public enum Cause: Sendable, Equatable {
    /// The queue in memory was full.
    case queueFull
    /// The spool was full, unwritable or not there while the daemon was away.
    case spoolFull
    /// The daemon refused them for good.
    case refused
    /// A file of the spool was damaged; `count` is in bytes.
    case damaged
  }

  /// Why they are lost.
  public let cause: Cause
  /// Reports since the last call with this cause.
  public let count: UInt64
  /// The daemon's code and message for `refused`, else an explanation; of one of them.
  public let code: String, message: String

  init?(_ loss: prism_loss, count: UInt64, code: String, message: String) {
    switch loss {
    case PRISM_LOSS_QUEUE: cause = .queueFull
    case PRISM_LOSS_SPOOL: cause = .spoolFull
    case PRISM_LOSS_REFUSED: cause = .refused
    case PRISM_LOSS_DAMAGED: cause = .damaged
    default: return nil
    }
    (self.count, self.code, self.message) = (count, code, message)
  }
}

/// Carries a function through C.
final class LossHandler: Sendable {
  private let handle: @Sendable (SpooledLoss) -> Void

  init(_ handle: @escaping @Sendable (SpooledLoss) -> Void) { self.handle = handle }

  static let called:
    @convention(c) (
      UnsafeMutableRawPointer?, prism_loss, UInt64, UnsafePointer<CChar>?, UnsafePointer<CChar>?
    ) -> Void = { context, loss, count, code, message in
      guard let context,
        let loss = SpooledLoss(
          loss, count: count, code: code.map { String(cString: $0) } ?? "",
          message: message.map { String(cString: $0) } ?? "")
      else { return }
      Unmanaged<LossHandler>.fromOpaque(context).takeUnretainedValue().handle(loss)
    }
}
