import PrismBase
import PrismProtocol

/// The places of a user's streams in a namespace, looked at once a batch.
struct StreamPlaces {
  /// Of all users, and of this one.
  private var taken = 0, own = 0
  /// The windows of this one's streams, by what they count and their names.
  private var windows: [String: String] = [:]

  init(_ windows: [String: OpenWindow], of userID: UInt32) {
    for (name, window) in windows where !window.streams.parts.isEmpty {
      taken += window.streams.places
      guard window.userID == userID else { continue }
      own += window.streams.places
      let subject = window.subject
      for stream in window.streams.parts.keys { self.windows[subject + stream] = name }
    }
  }

  func hasRoom(for places: Int, in window: OpenWindow) -> Bool {
    window.streams.places + places <= GroupStreams.placesMax.group
      && SharedPlaces(most: GroupStreams.placesMax.namespace).hasRoom(for: places, taken: taken, own: { own })
  }

  /// A stream takes its places in a window. - Returns: the window that it leaves; nil: it had no place.
  mutating func take(_ places: Int, for stream: String, of window: OpenWindow, _ name: String) -> String? {
    let before = windows.updateValue(name, forKey: window.subject + stream)
    if before == nil { (taken, own) = (taken + places, own + places) }
    return before
  }
}
