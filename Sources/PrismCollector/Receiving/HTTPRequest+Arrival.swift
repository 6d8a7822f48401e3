import PrismBase
import PrismHTTP

extension HTTPRequest {
  /// The time at which the head came, by the wall clock as it is now: on a slow link the body takes minutes. Milliseconds
  /// since 1970.
  func arrivalTime(by time: any TimeSource) -> Int64 {
    guard let headTime else { return time.unixMilliseconds }
    return time.unixMilliseconds - Int64((time.uptime - headTime) / .milliseconds(1))
  }
}
