import PrismProtocol
import Synchronization

// `prismctl tail`: reports as they are admitted or refused.
extension ControlDesk {
  /// `{"following":true}`, then `{"report":{…}}` a report, and `{"skipped":12}` where the reader was too slow for so many.
  /// It ends with its reader. The place in the feed is given up with the stream.
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
