import Glibc

/// A lock whose waiters sleep soon. Those of Swift's `Mutex` spin in the kernel as long as the holder runs. Where the cores
/// are few, that is time which the holder's clients need.
/// Sendable: it holds a lock and nothing else.
final class SleepingLock: @unchecked Sendable {
  private let lock = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)

  init() {
    var attributes = pthread_mutexattr_t()
    pthread_mutexattr_init(&attributes)
    // Tries a few times before it sleeps: a turn of one answer is over before a thread could sleep.
    pthread_mutexattr_settype(&attributes, CInt(PTHREAD_MUTEX_ADAPTIVE_NP))
    pthread_mutex_init(lock, &attributes)
    pthread_mutexattr_destroy(&attributes)
  }

  deinit {
    pthread_mutex_destroy(lock)
    lock.deallocate()
  }

  func withLock(_ body: () -> Void) {
    pthread_mutex_lock(lock)
    defer { pthread_mutex_unlock(lock) }
    body()
  }
}
