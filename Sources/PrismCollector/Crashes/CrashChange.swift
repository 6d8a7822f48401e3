import PrismProtocol

/// A change of a group of crashes, as an operator asks for it.
struct CrashChange: Sendable, Equatable {
  /// nil: the state stays.
  private(set) var condition: CrashState.Condition?
  private(set) var build: String?
  private(set) var more: Int?, moreDevices: Int?
  /// Milliseconds since 1970.
  private(set) var until: Int64?
  /// Texts by their member; "" removes one.
  private var notes: [String: String] = [:]

  /// - Parameter now: milliseconds since 1970.
  /// - Throws: 400 naming the member that is wrong.
  init(_ body: JSONValue, now: Int64) throws(CollectorRefusal) {
    if let state = body["state"] {
      guard let condition = state.string.flatMap({ CrashState.Condition(rawValue: $0) }), condition != .regressed else {
        throw CollectorRefusal(400, "state: must be resolved, ignored or open")
      }
      self.condition = condition
    }
    build = try Self.text(body, "build", bytesMax: 200, "null for any later crash")
    more = try Self.number(body, "count", 1...1_000_000_000).map(Int.init)
    moreDevices = try Self.number(body, "devices", 1...1_000_000_000).map(Int.init)
    until = try Self.number(body, "until", (now + 1)...Int64.max)
    for (member, bytesMax) in [("assignee", 200), ("comment", 2000), ("link", 1000)] where body[member] != nil {
      notes[member] = try Self.text(body, member, bytesMax: bytesMax, "null to remove it") ?? ""
    }
    try check()
  }

  private func check() throws(CollectorRefusal) {
    if condition == nil, notes.isEmpty {
      throw CollectorRefusal(400, "state: must be resolved, ignored or open; or send an assignee, a comment or a link")
    }
    if build != nil, condition != .resolved { throw CollectorRefusal(400, "build: belongs to the state resolved") }
    if (more != nil || moreDevices != nil || until != nil) != (condition == .ignored) {
      throw CollectorRefusal(
        400, "count, devices, until: the state ignored needs one of them, and no other state has them")
    }
    if let link = notes["link"], !link.isEmpty, !["https://", "http://"].contains(where: { link.hasPrefix($0) }) {
      throw CollectorRefusal(400, "link: must begin with https:// or http://")
    }
  }

  private static func text(
    _ body: JSONValue, _ member: String, bytesMax: Int, _ otherwise: String
  ) throws(CollectorRefusal) -> String? {
    switch body[member] {
    case nil, .null: return nil
    case .string(let text) where (1...bytesMax).contains(text.utf8.count): return text
    default: throw CollectorRefusal(400, "\(member): must be a text of 1 to \(bytesMax) bytes, or \(otherwise)")
    }
  }

  private static func number(
    _ body: JSONValue, _ member: String, _ range: ClosedRange<Int64>
  ) throws(CollectorRefusal) -> Int64? {
    guard let value = body[member], value != .null else { return nil }
    guard let number = value.int.map({ Int64($0) }), range.contains(number) else {
      throw CollectorRefusal(400, "\(member): must be a number of \(range.lowerBound) to \(range.upperBound), or null")
    }
    return number
  }

  /// The state of a group once this is done.
  /// - Parameters:
  ///   - before: nil: nothing was said about the group.
  ///   - newest: the newest crash of the store.
  func state(of group: CrashGroup, before: CrashState?, newest: Int64, by who: String, at now: Int64) -> CrashState {
    var state = CrashState(noting: group, before, at: now)
    let note = { (member: String) in
      self.notes[member].map { $0.isEmpty ? nil : CrashFacts.Note(text: $0, who: who, time: now) }
    }
    if let assignee = note("assignee") { state.facts.assignee = assignee }
    if let link = note("link") { state.facts.link = link }
    if let comment = note("comment") ?? nil { state.facts.add(comment) }
    guard let condition else { return state }
    state.facts.builds = condition == .resolved ? group.knownVersions : []
    state.facts.ignored = condition == .ignored ? .init(more: more, moreDevices: moreDevices, until: until) : nil
    (state.condition, state.who, state.changedTime) = (condition, who, now)
    (state.report, state.build, state.regressedTime) = (newest, build, nil)
    return state
  }

  /// For the log: `resolved a crash`.
  var deed: String {
    switch condition {
    case .resolved: "resolved a crash"
    case .ignored: "ignored a crash"
    case .open, .regressed: "reopened a crash"
    case nil: "noted " + notes.keys.sorted().joined(separator: ", ") + " of a crash"
    }
  }
}
