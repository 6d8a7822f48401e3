import PrismAdmission
import PrismProtocol
import Synchronization

// `prismctl tail`: reports as they are admitted or refused.
extension ControlHandler {
  /// `{"following":true}`, then `{"report":{…}}` for each report, and `{"skipped":12}` for reports that a slow reader
  /// missed. It ends with its reader. The place in the feed ends with the stream.
  func tail(_ request: ControlRequest) -> AsyncStream<JSONValue> {
    let subscription = engine.feed.follow(
      ReportFeed.Filter(
        namespace: request["namespace"]?.string, type: request["type"]?.string,
        isRefusedOnly: request["refused"]?.bool == true))
    let greeting = Mutex<JSONValue?>(["following": true])
    return AsyncStream {
      if let first = greeting.withLock({ $0.take() }) { return first }
      switch await subscription.next() {
      case .report(let event): return ["report": event.report.controlJSON]
      case .skipped(let count): return ["skipped": .int(count)]
      case nil: return nil
      }
    }
  }
}
