import Dispatch

/// A queue for one piece of work that blocks for long.
enum OwnedQueue {
  static func run<Result: Sendable>(_ label: String, _ body: @escaping @Sendable () throws -> Result) async throws
    -> Result
  {
    try await withCheckedThrowingContinuation { continuation in
      DispatchQueue(label: label).async { continuation.resume(with: Swift.Result { try body() }) }
    }
  }
}
