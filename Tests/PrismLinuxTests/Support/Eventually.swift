import Glibc
import Testing

/// Waits until `condition` holds; the bound is only for the day when it never does.
func eventually(_ what: Comment, _ condition: @Sendable () async -> Bool) async throws {
  let clock = ContinuousClock()
  let deadline = clock.now + .seconds(30)
  while await !condition() {
    guard clock.now < deadline else {
      Issue.record("never came: \(what)")
      return
    }
    try await Task.sleep(for: .milliseconds(5))
  }
}
