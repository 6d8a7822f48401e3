/// Runs what needs more memory than was reserved for it one after the other, so that only one of them holds it.
actor OneAtATime {
  private var last: Task<Void, Never>?

  func run<Result: Sendable>(_ body: @escaping @Sendable () async -> Result) async -> Result {
    let before = last
    let task = Task {
      await before?.value
      return await body()
    }
    last = Task { _ = await task.value }
    return await task.value
  }
}
