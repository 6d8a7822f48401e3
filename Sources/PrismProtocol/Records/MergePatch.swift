// JSON Merge Patch (RFC 7396).
extension JSONValue {
  /// This value with `patch` applied: members of the patch replace those of the same key, null removes one, and objects are
  /// merged member by member.
  public func merged(with patch: JSONValue) -> JSONValue {
    guard case .object(let changes) = patch else { return patch }
    var members = object ?? []
    for change in changes {
      let place = members.firstIndex { $0.key == change.key }
      if change.value.isNull {
        if let place { members.remove(at: place) }
      } else {
        let before = place.map { members[$0].value } ?? .null
        let member = Member(change.key, before.merged(with: change.value))
        if let place { members[place] = member } else { members.append(member) }
      }
    }
    return .object(members)
  }

  /// Whether both say the same: the order of members does not count, the text of numbers does.
  public func says(the other: JSONValue) -> Bool {
    switch (self, other) {
    case (.object(let mine), .object(let others)):
      guard mine.count == others.count else { return false }
      let byKey = Dictionary(others.map { ($0.key, $0.value) }, uniquingKeysWith: { first, _ in first })
      return mine.allSatisfy { member in byKey[member.key].map { member.value.says(the: $0) } ?? false }
    case (.array(let mine), .array(let others)):
      return mine.count == others.count && zip(mine, others).allSatisfy { $0.says(the: $1) }
    default: return self == other
    }
  }
}
