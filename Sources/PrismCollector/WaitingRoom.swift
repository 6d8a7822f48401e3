import PrismBase
import PrismProtocol

/// Where packets wait for the one that they depend on, in case it is on its way (6-delivery.md, Order at the receiver).
actor WaitingRoom {
  static let patience: Duration = .seconds(30)
  static let placesMax = 256
  /// Of one device, so that none keeps the others out; it has one packet on its way per namespace and kind.
  static let placesOfDeviceMax = 32

  private struct Place {
    let awaited: PacketContext
    var waiter: CheckedContinuation<Bool, Never>?
    /// Whether it arrived; nil: neither that nor the end of patience came yet.
    var outcome: Bool?
  }

  private let time: any TimeSource
  private var places: [Int: Place] = [:]
  private var lastNumber = 0

  init(time: any TimeSource) { self.time = time }

  /// Returns true when the packet `awaited` arrived, false when `patience` is over; nil when there is no place left.
  /// - Parameter isThere: asked once the wait has begun, so that an arrival in between is not missed.
  func wait(for awaited: PacketContext, isThere: @Sendable () async -> Bool) async -> Bool? {
    guard places.count < Self.placesMax, placesTaken(by: awaited.deviceID) < Self.placesOfDeviceMax else { return nil }
    lastNumber += 1
    let number = lastNumber
    places[number] = Place(awaited: awaited)
    defer { places[number] = nil }
    let (time, deadline) = (time, time.uptime + Self.patience)
    let timer = Task {
      do { try await time.sleep(until: deadline) } catch { return }  // it arrived
      self.end(number, arrived: false)
    }
    defer { timer.cancel() }
    if await isThere() { return true }
    return await outcome(number)
  }

  /// A packet was stored.
  func arrived(_ packet: PacketContext) {
    for number in places.filter({ $0.value.awaited == packet }).keys { end(number, arrived: true) }
  }

  private func placesTaken(by device: String) -> Int {
    places.values.reduce(0) { $0 + ($1.awaited.deviceID == device ? 1 : 0) }
  }

  private func outcome(_ number: Int) async -> Bool {
    if let outcome = places[number]?.outcome { return outcome }
    return await withCheckedContinuation { places[number]?.waiter = $0 }
  }

  private func end(_ number: Int, arrived: Bool) {
    guard let place = places[number], place.outcome == nil else { return }
    places[number]?.outcome = arrived
    places[number]?.waiter = nil
    place.waiter?.resume(returning: arrived)
  }
}
