/// Which reports of a page the brokers have answered for. Places count from 0.
struct KafkaDeliveries {
  private enum Place { case open, delivered, refused }

  private var places: [Place]
  /// Why no broker takes a report, by its place.
  private(set) var causes: [Int: String] = [:]
  /// Delivered or refused.
  private(set) var answered = 0
  /// The first message that this producer can't deliver, and why; nil: all may be.
  private(set) var failure: (place: Int, cause: String, isOfMessage: Bool)?

  init(count: Int) { places = [Place](repeating: .open, count: count) }

  /// How many reports from the first one on need not come again.
  var taken: Int { places.prefix { $0 != .open }.count }

  mutating func deliver(_ place: Int) { _ = answer(place, .delivered) }

  /// No broker takes this report, now or later.
  mutating func refuse(_ place: Int, _ cause: String) {
    if answer(place, .refused) { causes[place] = cause }
  }

  /// - Returns: false: it had an answer before.
  private mutating func answer(_ place: Int, _ answer: Place) -> Bool {
    guard places.indices.contains(place), places[place] == .open else { return false }
    places[place] = answer
    answered += 1
    return true
  }

  /// - Parameter isOfMessage: the cause is the message itself, or one of those that were sent with it.
  mutating func fail(_ place: Int, _ cause: String, isOfMessage: Bool) {
    failure = failure ?? (place, cause, isOfMessage)
  }

  /// The failed message is refused for good. - Returns: false: that is not the cause of the failure.
  mutating func refuseFailed() -> Bool {
    guard let failed = failure, failed.isOfMessage else { return false }
    failure = nil
    refuse(failed.place, failed.cause)
    return true
  }
}
