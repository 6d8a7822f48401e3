import PrismBase
import PrismProtocol

/// Where packets wait for the one that they depend on, in case it is on its way (docs/delivery.md, "Order at the
/// receiver").
actor WaitingRoom {
  static let patience: Duration = .seconds(30)
  static let placesMax = 256
  /// Of one device, so that none keeps the others out; it has one packet on its way per namespace and kind.
  static let placesOfDeviceMax = 32

  enum Outcome: Sendable {
    case arrived
    /// `patience` is over.
    case late
    /// None is left, or the collector stops.
    case noPlace
  }

  private struct Place {
    let awaited: PacketContext
    var waiter: CheckedContinuation<Outcome, Never>?
    var outcome: Outcome?
  }

  private let time: any TimeSource
  private var places: [Int: Place] = [:]
  private var lastNumber = 0
  private var isClosed = false

  init(time: any TimeSource) { self.time = time }

  /// - Parameter isThere: asked once the wait has begun, so that an arrival in between is not missed.
  func wait(for awaited: PacketContext, isThere: @Sendable () async -> Bool) async -> Outcome {
    guard !isClosed, places.count < Self.placesMax, placesTaken(by: awaited.deviceID) < Self.placesOfDeviceMax else {
      return .noPlace
    }
    lastNumber += 1
    let number = lastNumber
    places[number] = Place(awaited: awaited)
    defer { places[number] = nil }
    let (time, deadline) = (time, time.uptime + Self.patience)
    let timer = Task {
      do { try await time.sleep(until: deadline) } catch { return }  // it arrived
      self.end(number, .late)
    }
    defer { timer.cancel() }
    if await isThere() { return .arrived }
    return await outcome(number)
  }

  /// A packet was stored.
  func arrived(_ packet: PacketContext) {
    for number in places.filter({ $0.value.awaited == packet }).keys { end(number, .arrived) }
  }

  /// Nobody waits any more, nor from now on.
  func close() {
    isClosed = true
    for number in places.keys { end(number, .noPlace) }
  }

  private func placesTaken(by device: String) -> Int {
    places.values.reduce(0) { $0 + ($1.awaited.deviceID == device ? 1 : 0) }
  }

  private func outcome(_ number: Int) async -> Outcome {
    if let outcome = places[number]?.outcome { return outcome }
    return await withCheckedContinuation { places[number]?.waiter = $0 }
  }

  private func end(_ number: Int, _ outcome: Outcome) {
    guard let place = places[number], place.outcome == nil else { return }
    places[number]?.outcome = outcome
    places[number]?.waiter = nil
    place.waiter?.resume(returning: outcome)
  }
}
