import Synchronization

/// The memory that packets share from their decryption until they are stored. A packet that finds too little of it
/// waits. Turns of readers are shared alike (`ReadGate`).
final class MemoryBudget: Sendable {
  /// A share of the budget. It is given back when the last reference to it is gone.
  final class Lease: Sendable {
    private let budget: MemoryBudget
    private let bytes: Mutex<Int>

    fileprivate init(_ budget: MemoryBudget, bytes: Int) {
      self.budget = budget
      self.bytes = Mutex(bytes)
    }
    /// Of all shares.
    var bytesMax: Int { budget.bytesMax }
    var bytesTaken: Int { bytes.withLock { $0 } }
    deinit { budget.giveBack(bytes.withLock { $0 }) }

    /// Whether as much more may be there some day.
    func mayGrow(by more: Int) -> Bool { bytesTaken + more <= budget.bytesMax }

    /// Takes more, if it is there; never waits. - Returns: false: it is not, and the share stays as it is.
    func grow(by more: Int) -> Bool {
      guard more > 0 else { return true }
      guard budget.takeNow(more, isBehindOthers: false) else { return false }
      bytes.withLock { $0 += more }
      return true
    }
  }

  private struct State {
    var freeBytes: Int
    var waiting: [(bytes: Int, answer: CheckedContinuation<Void, Never>)] = []
  }

  /// Packets that wait for memory hold their bodies.
  static let waitingMax = 64

  let bytesMax: Int
  private let waitingMax: Int
  private let state: Mutex<State>

  init(bytesMax: Int, waitingMax: Int = waitingMax) {
    (self.bytesMax, self.waitingMax) = (bytesMax, waitingMax)
    state = Mutex(State(freeBytes: bytesMax))
  }

  var usedBytes: Int { state.withLock { bytesMax - $0.freeBytes } }
  var waitingCount: Int { state.withLock { $0.waiting.count } }

  /// Never waits. - Returns: nil if the bytes are not there now, or others wait for theirs.
  func takeAtOnce(_ bytes: Int) -> Lease? {
    takeNow(bytes, isBehindOthers: true) ? Lease(self, bytes: bytes) : nil
  }

  /// Waits until the bytes are there, behind those who came before.
  /// - Returns: nil where too many wait already, or there will never be as much.
  func take(_ bytes: Int) async -> Lease? {
    guard bytes <= bytesMax else { return nil }
    if let lease = takeAtOnce(bytes) { return lease }
    guard waitingCount < waitingMax else { return nil }
    await wait(bytes)
    return Lease(self, bytes: bytes)
  }

  private func takeNow(_ bytes: Int, isBehindOthers: Bool) -> Bool {
    state.withLock { state in
      guard !isBehindOthers || state.waiting.isEmpty, bytes <= state.freeBytes else { return false }
      state.freeBytes -= bytes
      return true
    }
  }

  private func wait(_ bytes: Int) async {
    await withCheckedContinuation { continuation in
      let served = state.withLock { state in
        state.waiting.append((bytes, continuation))
        return Self.serve(&state)  // it may have been given back meanwhile
      }
      for answer in served { answer.resume() }
    }
  }

  private func giveBack(_ bytes: Int) {
    let served = state.withLock { state in
      state.freeBytes += bytes
      return Self.serve(&state)
    }
    for answer in served { answer.resume() }
  }

  private static func serve(_ state: inout State) -> [CheckedContinuation<Void, Never>] {
    var served: [CheckedContinuation<Void, Never>] = []
    while let first = state.waiting.first, first.bytes <= state.freeBytes {
      state.freeBytes -= first.bytes
      served.append(state.waiting.removeFirst().answer)
    }
    return served
  }
}
