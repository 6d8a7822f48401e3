import Glibc

/// A thread of its own for work that blocks as long as the program runs, or nearly.
public enum DetachedThread {
  private final class Start: Sendable {
    let body: @Sendable () -> Void
    init(_ body: @escaping @Sendable () -> Void) { self.body = body }
  }

  /// Runs `body` on a new thread. - Returns: 0, or the `errno` that says why there is no thread.
  public static func start(_ body: @escaping @Sendable () -> Void) -> Int32 {
    let start = Unmanaged.passRetained(Start(body))
    var thread = pthread_t()
    let failed = pthread_create(
      &thread, nil,
      { argument in
        guard let argument else { return nil }
        Unmanaged<Start>.fromOpaque(argument).takeRetainedValue().body()
        return nil
      }, start.toOpaque())
    if failed == 0 { pthread_detach(thread) } else { start.release() }
    return failed
  }
}
