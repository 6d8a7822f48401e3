/// Tasks that a stop waits for. An ended one is removed at once: it keeps 12 KiB of stack.
struct RunningTasks {
  private var tasks: [Int: Task<Void, Never>] = [:]
  private var last = 0

  /// The one that began first.
  var first: Task<Void, Never>? { tasks.keys.min().flatMap { tasks[$0] } }

  /// - Parameter begin: begins a task, which has to be removed by this number at its end.
  mutating func add(_ begin: (Int) -> Task<Void, Never>) {
    last += 1
    tasks[last] = begin(last)
  }

  mutating func remove(_ number: Int) { tasks[number] = nil }

  func cancel() { for number in tasks.keys.sorted() { tasks[number]?.cancel() } }
}
