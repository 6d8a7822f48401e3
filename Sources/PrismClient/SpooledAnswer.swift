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
