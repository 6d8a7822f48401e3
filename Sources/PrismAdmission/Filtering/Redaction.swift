import PrismBase
import PrismConfig
import PrismProtocol

/// Removes, masks or hashes members of a meta. Pure.
struct Redaction: Sendable {
  static let mask = JSONValue.string("***")

  let rules: [TypeFilters.Redaction]
  let hash: FilterTools.KeyedHash

  /// - Returns: nil if no rule met a member.
  func applied(to meta: JSONValue) -> JSONValue? {
    var (result, isChanged) = (meta, false)
    for rule in rules {
      if let changed = change(result, rule.field.keys[...], rule.action) { (result, isChanged) = (changed, true) }
    }
    return isChanged ? result : nil
  }

  /// - Returns: nil if nothing under `value` is on the path.
  private func change(
    _ value: JSONValue, _ path: ArraySlice<String>, _ action: TypeFilters.Redaction.Action
  ) -> JSONValue? {
    switch value {
    case .object(let members): changed(members, path, action).map { .object($0) }
    case .array(let elements) where path.first == "*": changed(elements, path.dropFirst(), action).map { .array($0) }
    default: nil
    }
  }

  private func changed(
    _ members: [JSONValue.Member], _ path: ArraySlice<String>, _ action: TypeFilters.Redaction.Action
  ) -> [JSONValue.Member]? {
    var isChanged = false
    let result = members.compactMap { member -> JSONValue.Member? in
      var value = member.value
      for rest in Self.rests(of: path, behind: member.key) {
        if rest.isEmpty {
          isChanged = true
          guard let redacted = redacted(value, action) else { return nil }
          value = redacted
        } else if let changed = change(value, rest, action) {
          (value, isChanged) = (changed, true)
        }
      }
      return JSONValue.Member(member.key, value)
    }
    return isChanged ? result : nil
  }

  private func changed(
    _ elements: [JSONValue], _ rest: ArraySlice<String>, _ action: TypeFilters.Redaction.Action
  ) -> [JSONValue]? {
    var isChanged = false
    let result = elements.compactMap { element -> JSONValue? in
      guard !rest.isEmpty else {
        isChanged = true
        return redacted(element, action)
      }
      guard let changed = change(element, rest, action) else { return element }
      isChanged = true
      return changed
    }
    return isChanged ? result : nil
  }

  /// The rests of `path` behind a member with this key. A key may have dots itself, so it may use up several.
  private static func rests(of path: ArraySlice<String>, behind key: String) -> [ArraySlice<String>] {
    var rests: [ArraySlice<String>] = []
    if path.first == "*" { rests.append(path.dropFirst()) }
    for count in 1...path.count where path.prefix(count).joined(separator: ".") == key && key != "*" {
      rests.append(path.dropFirst(count))
    }
    return rests
  }

  private func redacted(_ value: JSONValue, _ action: TypeFilters.Redaction.Action) -> JSONValue? {
    switch action {
    case .drop: return nil
    case .mask: return Self.mask
    case .hash:
      let bytes = value.string.map { Array($0.utf8) } ?? value.bytes
      return hash(bytes).map { .string(Hex.encode($0)) } ?? Self.mask
    }
  }
}
