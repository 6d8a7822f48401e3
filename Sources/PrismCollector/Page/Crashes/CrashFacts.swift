import PrismProtocol

/// The facts about a group of crashes that are kept as one text beside its state.
struct CrashFacts: Sendable, Equatable {
  static let commentsMax = 20

  /// An operator's words, with who said them and when: milliseconds since 1970.
  struct Note: Sendable, Equatable {
    let text: String, who: String
    let time: Int64

    var json: JSONValue { ["text": .string(text), "who": .string(who), "time": .int(time)] }

    init(text: String, who: String, time: Int64) { (self.text, self.who, self.time) = (text, who, time) }

    init?(_ value: JSONValue?) {
      guard let text = value?["text"]?.string, let who = value?["who"]?.string, let time = value?["time"]?.int else {
        return nil
      }
      self.init(text: text, who: who, time: Int64(time))
    }
  }

  /// How long a group is ignored: until a number of crashes or devices more, or until a time, the first of them.
  struct Ignored: Sendable, Equatable {
    /// Of the group when it was ignored.
    var count = 0, devices = 0
    var more: Int?, moreDevices: Int?
    /// Milliseconds since 1970.
    var until: Int64?

    func isOver(count: Int, devices: Int, now: Int64) -> Bool {
      let hasCrashes = more.map { count - self.count >= $0 } ?? false
      let hasDevices = moreDevices.map { devices - self.devices >= $0 } ?? false
      return hasCrashes || hasDevices || until.map { now >= $0 } ?? false
    }
  }

  /// The builds that crashed before it was resolved.
  var builds: [String] = []
  var ignored: Ignored?
  var assignee: Note?
  /// The address of a ticket.
  var link: Note?
  /// The newest ones, ascending.
  var comments: [Note] = []
  /// The operator's rule about the crashes with this key.
  var rule: CrashRule?
  /// The rules by which the group was made, and a report of it, by which it is found under other rules.
  var rules = CrashFrameTable.version
  var sample: Int64?

  mutating func add(_ comment: Note) { comments = (comments + [comment]).suffix(Self.commentsMax) }

  // MARK: As a text

  var text: String {
    let ignored = ignored.map { ignored -> JSONValue in
      [
        "count": .int(ignored.count), "more": ignored.more.map { .int($0) } ?? .null,
        "devices": .int(ignored.devices), "moreDevices": ignored.moreDevices.map { .int($0) } ?? .null,
        "until": ignored.until.map { .int($0) } ?? .null,
      ]
    }
    let value: JSONValue = [
      "rule": rule?.json ?? .null,
      "builds": .array(builds.map { .string($0) }), "ignored": ignored ?? .null, "assignee": assignee?.json ?? .null,
      "link": link?.json ?? .null, "comments": .array(comments.map(\.json)), "rules": .int(rules),
      "sample": sample.map { .int($0) } ?? .null,
    ]
    return value.text
  }

  init(builds: [String] = []) { self.builds = builds }

  /// Reads `text`, or the list of builds that an earlier version wrote.
  init(text: String) {
    let value = (try? JSONValue(parsing: text)) ?? .null  // written by `text`
    builds = (value["builds"]?.array ?? value.array ?? []).compactMap(\.string)
    if let ignored = value["ignored"], ignored["count"] != nil {
      self.ignored = Ignored(
        count: ignored["count"]?.int ?? 0, devices: ignored["devices"]?.int ?? 0, more: ignored["more"]?.int,
        moreDevices: ignored["moreDevices"]?.int, until: ignored["until"]?.int.map { Int64($0) })
    }
    rule = CrashRule(value["rule"])
    (assignee, link) = (Note(value["assignee"]), Note(value["link"]))
    comments = (value["comments"]?.array ?? []).compactMap { Note($0) }
    (rules, sample) = (value["rules"]?.int ?? 1, value["sample"]?.int.map { Int64($0) })
  }
}
