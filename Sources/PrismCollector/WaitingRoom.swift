import PrismBase
import PrismProtocol

/// Where packets wait for the one that they depend on, in case it is on its way (6-delivery.md, Order at the receiver).
actor WaitingRoom {
  static let patience: Duration = .seconds(30)
  static let placesMax = 256

  private let time: any TimeSource
  private var waiters: [PacketContext: [Int: CheckedContinuation<Bool, Never>]] = [:]
  private var places = 0
  private var lastNumber = 0

  init(time: any TimeSource) { self.time = time }

  /// Returns true when the packet `awaited` arrived, false when `patience` is over; nil when there is no place left.
  /// - Parameter isThere: asked once the wait has begun, so that an arrival in between is not missed.
  func wait(for awaited: PacketContext, isThere: @Sendable () async -> Bool) async -> Bool? {
    guard places < Self.placesMax else { return nil }
    places += 1
    lastNumber += 1
    let number = lastNumber
    defer { places -= 1 }
    let deadline = time.uptime + Self.patience
    let time = time
    let timer = Task {
      do { try await time.sleep(until: deadline) } catch { return }  // it arrived
      self.end(awaited, number, arrived: false)
    }
    defer { timer.cancel() }
    async let arrival = arrival(of: awaited, number)
    if await isThere() { end(awaited, number, arrived: true) }
    return await arrival
  }

  /// A packet was stored.
  func arrived(_ packet: PacketContext) {
    for continuation in waiters.removeValue(forKey: packet).map({ Array($0.values) }) ?? [] {
      continuation.resume(returning: true)
    }
  }

  private var endedEarly: [Int: Bool] = [:]

  private func arrival(of awaited: PacketContext, _ number: Int) async -> Bool {
    if let ended = endedEarly.removeValue(forKey: number) { return ended }
    return await withCheckedContinuation { waiters[awaited, default: [:]][number] = $0 }
  }

  private func end(_ awaited: PacketContext, _ number: Int, arrived: Bool) {
    if let continuation = waiters[awaited]?.removeValue(forKey: number) {
      if waiters[awaited]?.isEmpty == true { waiters[awaited] = nil }
      continuation.resume(returning: arrived)
    } else {
      endedEarly[number] = arrived
    }
  }
}
