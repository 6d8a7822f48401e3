import PrismBase
import PrismConfig
import PrismPacket
import PrismProtocol

/// A message for a receiver, sent once: it is stored with its state.
struct Notice: Sendable, Equatable {
  typealias Event = CollectorConfiguration.Notice.Event

  /// Its way to the receiver.
  enum State: String, Sendable, CaseIterable {
    case waiting, delivered
    /// The receiver refused it for good, or failed too often: an operator may send it again.
    case dead
    /// An operator wants no further attempt.
    case dropped
  }

  /// One of the things that it is about.
  struct Item: ControlMessage {
    static let textBytesMax = 300

    private(set) var text = ""
    /// A fingerprint, a device, or a type.
    private(set) var object = ""

    init() {}

    init(_ text: String, object: String) {
      (self.text, self.object) = (Self.line(text), Self.line(object))
    }

    private static func line(_ text: String) -> String {
      OutputText.line(String(decoding: text.utf8.prefix(textBytesMax), as: UTF8.self))
    }
  }

  /// Items that are named; the count has the others too.
  static let itemsMax = 20

  let id: String
  let receiver: String
  /// nil: a test.
  let event: Event?
  /// Milliseconds since 1970.
  let time: Int64
  let title: String
  let count: Int
  let items: [Item]
  var state = State.waiting
  /// Attempts to deliver it, those that are going on too.
  var attempts = 0
  /// When the next attempt is due, or one that is going on is given up: milliseconds since 1970.
  var dueTime: Int64
  /// The end of the last attempt, in words.
  var result: String?

  /// - Parameter key: two notices with one key are the same one.
  init(_ event: Event?, to receiver: String, key: String, time: Int64, title: String, count: Int = 1, items: [Item]) {
    let hash = (try? Hashing.sha256(Array("\(receiver)\n\(event?.rawValue ?? "test")\n\(key)".utf8))) ?? []
    (id, self.receiver, self.event, self.time) = (Hex.encode(Array(hash.prefix(8))), receiver, event, time)
    (self.title, self.count, self.items) = (title, count, Array(items.prefix(Self.itemsMax)))
    dueTime = time
  }

  // MARK: As it is stored

  /// Its unchanging parts, as one text.
  var content: String {
    JSONValue(["title": title, "count": count, "items": items]).text
  }

  /// As the API shows it, and its own form of a request has it.
  var json: JSONValue {
    JSONValue([
      "id": id, "event": event?.rawValue ?? "test", "time": time, "title": title, "count": count, "items": items,
    ])
  }

  var shown: JSONValue {
    json.adding([
      "receiver": receiver, "state": state.rawValue, "attempts": attempts, "result": result,
      "nextTime": state == .waiting ? dueTime : nil,
    ])
  }
}
