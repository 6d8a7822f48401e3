import Glibc

/// A lock whose waiters sleep soon and get it in their order, so that no thread which takes it again and again keeps another
/// one waiting.
///
/// The waiters of Swift's `Mutex` spin in the kernel as long as the holder runs. Where the cores are few, that is time which
/// the holder's clients need. A lock of POSIX lets a running thread in before one that sleeps.
/// Sendable: it holds locks and nothing else.
final class FairLock: @unchecked Sendable {
  private let turn = AdaptiveMutex()
  /// Held by the one that is next. The holder of the turn can't be the next one while another one waits.
  private let next = AdaptiveMutex()

  deinit {
    turn.destroy()
    next.destroy()
  }

  func withLock(_ body: () -> Void) {
    next.lock()
    turn.lock()
    next.unlock()
    defer { turn.unlock() }
    body()
  }
}

/// Tries a few times before it sleeps: a turn of one answer is over before a thread could sleep.
private struct AdaptiveMutex {
  private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)

  init() {
    var attributes = pthread_mutexattr_t()
    pthread_mutexattr_init(&attributes)
    pthread_mutexattr_settype(&attributes, CInt(PTHREAD_MUTEX_ADAPTIVE_NP))
    pthread_mutex_init(mutex, &attributes)
    pthread_mutexattr_destroy(&attributes)
  }

  func lock() { pthread_mutex_lock(mutex) }
  func unlock() { pthread_mutex_unlock(mutex) }

  func destroy() {
    pthread_mutex_destroy(mutex)
    mutex.deallocate()
  }
}
