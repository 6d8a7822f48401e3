import PrismProtocol

/// The last points of a group's streams, which count from their start on. A stream that is alive loses its place to no other.
struct GroupStreams: Sendable, Equatable {
  /// A stream's place in its group.
  enum Place {
    case none
    /// Its total at its first point here may be counted already.
    case held
    /// No point of it was counted before.
    case new
  }

  /// Of a group, as each of its commits writes them all, and of a namespace, for the memory.
  static let placesMax = (group: 256, namespace: 16_000)
  /// After its last point. Then its age is over `ageMax`, so that it never comes again as a new one.
  private static let aliveMilliseconds: Int64 = 7_200_000
  private static let ageMax: Int64 = 3_600_000

  /// By the names of the streams.
  private(set) var parts: [String: JSONValue] = [:]
  /// Points of the window whose streams had no place.
  private(set) var leftOut = 0
  /// The held time of the last of them, also of a window before.
  private var refused: Int64 = 0

  init() {}

  var isEmpty: Bool { parts.isEmpty && refused == 0 }

  /// A histogram takes more, as its note is larger.
  static func places(of part: JSONValue) -> Int { part["total"] == nil ? 4 : 1 }

  /// All are of one kind.
  var places: Int { parts.count * (parts.values.first.map { Self.places(of: $0) } ?? 0) }

  /// Whether no point of an unknown stream was counted before. - Parameter now: milliseconds since 1970.
  func isNew(_ part: JSONValue, now: Int64, heldTime: Int64) -> Bool {
    let (start, time) = CumulativePart.times(of: part)
    guard start > 0 else { return false }
    // By the daemon's clock, as points come late, and by the sender's, as that may be another.
    let age = now - Int64(start) / 1_000_000
    let stated = time > 0 ? Int64(time - start) / 1_000_000 : age
    return age >= -Self.ageMax && max(age, stated) <= min(Self.ageMax, heldTime - refused)
  }

  /// - Returns: what the point adds; nil: nothing.
  mutating func add(_ part: JSONValue, to stream: String, _ place: Place, heldTime: Int64) -> JSONValue? {
    guard let before = parts[stream] else {
      if place == .none {
        (leftOut, refused) = (leftOut + 1, heldTime)
      } else {
        parts[stream] = Self.kept(part, seen: heldTime)
      }
      return place == .new ? CumulativePart.whole(part) : nil
    }
    let news = CumulativePart.news(in: part, since: before)
    parts[stream] = Self.kept(news == nil ? before : part, seen: heldTime)
    return news
  }

  mutating func forget(_ stream: String) { parts[stream] = nil }

  /// Streams that are not alive. - Returns: whether there were some.
  mutating func forgetSilent(_ heldTime: Int64) -> Bool {
    let before = parts.count
    parts = parts.filter { Self.isAlive($0.value, heldTime) }
    return parts.count < before
  }

  func isAlive(_ heldTime: Int64) -> Bool { parts.values.contains { Self.isAlive($0, heldTime) } }

  private static func isAlive(_ part: JSONValue, _ heldTime: Int64) -> Bool {
    seen(part) > heldTime - aliveMilliseconds
  }

  private static func seen(_ part: JSONValue) -> Int64 { Int64(part["seen"]?.int ?? 0) }

  /// The window is over. - Parameter silent: streams without a point since then are forgotten.
  mutating func end(_ end: Int64, silent: Int64) {
    parts = parts.filter { Self.seen($0.value) >= silent }
    (leftOut, refused) = (0, refused > end - Self.ageMax ? refused : 0)
  }

  // MARK: Note

  private static func kept(_ part: JSONValue, seen: Int64) -> JSONValue {
    let members = (part.object ?? []).filter { ["start", "time", "total", "value", "buckets"].contains($0.key) }
    return .object(members + [.init("seen", .int(seen))])
  }

  var members: [JSONValue.Member] {
    [
      .init("streams", .object(parts.map { .init($0.key, $0.value) })), .init("leftOut", .int(leftOut)),
      .init("refused", .int(refused)),
    ]
  }

  /// - Parameter end: of the window. In notes of before, which do not say more, streams may have lost their places until then.
  init(note: JSONValue, end: Int64) {
    for stream in note["streams"]?.object ?? [] {
      parts[stream.key] = Self.kept(stream.value, seen: stream.value["seen"]?.int.map { Int64($0) } ?? end)
    }
    leftOut = note["leftOut"]?.int ?? 0
    refused = note["refused"]?.int.map { Int64($0) } ?? (parts.isEmpty ? 0 : end)
  }
}
