import PrismBase
import PrismProtocol

/// Chooses devices: `tag.region = eu and (version < 2.10 or seen > 7d) and not lost = 0` (docs/fleet.md, "Find and choose devices").
///
/// Conditions are those of `DeviceCondition`, joined by `and`, `or`, `not` and parentheses; `not` binds before `and`, and `and`
/// before `or`.
struct DeviceExpression: Sendable, Equatable {
  private indirect enum Node: Sendable, Equatable {
    case condition(DeviceCondition)
    case not(Node)
    case all([Node])
    case any([Node])

    func holds(for device: DeviceSummary, now: Int64) -> Bool {
      switch self {
      case .condition(let condition): condition.holds(for: device, now: now)
      case .not(let node): !node.holds(for: device, now: now)
      case .all(let nodes): nodes.allSatisfy { $0.holds(for: device, now: now) }
      case .any(let nodes): nodes.contains { $0.holds(for: device, now: now) }
      }
    }

    func names(_ device: String) -> Bool {
      switch self {
      case .condition(let condition): condition.names(device)
      case .not(let node): node.names(device)
      case .all(let nodes), .any(let nodes): nodes.contains { $0.names(device) }
      }
    }
  }

  typealias Fault = MetaCondition.Fault

  static let (bytesMax, conditionsMax, depthMax) = (2048, 32, 16)

  private let root: Node

  /// - Throws: `Fault` with the place in the text.
  init(_ text: String) throws(Fault) {
    guard text.utf8.count <= Self.bytesMax else { throw Fault(reason: "has over \(Self.bytesMax) bytes") }
    var parser = Parser(rest: try DeviceToken.all(of: text)[...])
    root = try parser.any(depth: 0)
    if let token = parser.rest.first {
      throw token.fault("`and`, `or` or the end")
    }
  }

  /// - Parameter now: milliseconds since 1970.
  func includes(_ device: DeviceSummary, now: Int64) -> Bool { root.holds(for: device, now: now) }

  /// Whether one of its conditions has the id of a device.
  func names(_ device: String) -> Bool { root.names(device) }

  private struct Parser {
    var rest: ArraySlice<DeviceToken>
    var conditions = 0

    mutating func any(depth: Int) throws(Fault) -> Node {
      guard depth < DeviceExpression.depthMax else {
        throw Fault(reason: "has over \(DeviceExpression.depthMax) parentheses in each other")
      }
      var nodes = [try all(depth)]
      while take(word: "or") { nodes.append(try all(depth)) }
      return nodes.count == 1 ? nodes[0] : .any(nodes)
    }

    private mutating func all(_ depth: Int) throws(Fault) -> Node {
      var nodes = [try one(depth)]
      while take(word: "and") { nodes.append(try one(depth)) }
      return nodes.count == 1 ? nodes[0] : .all(nodes)
    }

    private mutating func one(_ depth: Int) throws(Fault) -> Node {
      var isNegated = false
      while take(word: "not") { isNegated.toggle() }
      let node = try part(depth)
      return isNegated ? .not(node) : node
    }

    private mutating func part(_ depth: Int) throws(Fault) -> Node {
      guard let token = rest.popFirst() else {
        throw Fault(reason: "ends where a condition must be, such as `tag.region = eu`")
      }
      if token.kind == .open {
        let node = try any(depth: depth + 1)
        guard rest.popFirst()?.kind == .close else { throw Fault(reason: "lacks a `)`") }
        return node
      }
      guard token.kind == .word else { throw token.fault("a condition, such as `tag.region = eu`") }
      conditions += 1
      guard conditions <= DeviceExpression.conditionsMax else {
        throw Fault(reason: "has over \(DeviceExpression.conditionsMax) conditions")
      }
      guard case .sign(let comparison)? = rest.first?.kind else {
        return .condition(try DeviceCondition(token.text, .exists, ""))
      }
      rest = rest.dropFirst()
      guard let value = rest.popFirst() else { throw Fault(reason: "ends where the value of `\(token.text)` must be") }
      guard value.kind == .word || value.kind == .quoted else { throw value.fault("a value") }
      return .condition(try DeviceCondition(token.text, comparison, value.text))
    }

    private mutating func take(word: String) -> Bool {
      guard rest.first?.kind == .word, rest.first?.text == word else { return false }
      rest = rest.dropFirst()
      return true
    }
  }
}

/// A word, a sign or a parenthesis of an expression.
private struct DeviceToken {
  enum Kind: Equatable {
    case word, quoted, open, close
    case sign(MetaCondition.Comparison)
  }

  let kind: Kind
  let text: String
  /// The number of its first character, from 1.
  let place: Int

  func fault(_ wanted: String) -> DeviceExpression.Fault {
    DeviceExpression.Fault(reason: "has `\(text.prefix(32))` at character \(place), must have \(wanted)")
  }

  static func all(of text: String) throws(DeviceExpression.Fault) -> [DeviceToken] {
    var (tokens, rest) = ([DeviceToken](), text[...])
    while true {
      rest = rest.drop { $0 == " " || $0 == "\n" || $0 == "\t" }
      guard let first = rest.first else { return tokens }
      let place = text.distance(from: text.startIndex, to: rest.startIndex) + 1
      let token: (kind: Kind, text: Substring)
      if first == "\"" {
        guard let end = rest.dropFirst().firstIndex(of: "\"") else {
          throw DeviceExpression.Fault(reason: "has a quote at character \(place) without a second one")
        }
        token = (.quoted, rest[rest.index(after: rest.startIndex)..<end])
        rest = rest[rest.index(after: end)...]
      } else if first == "(" || first == ")" {
        token = (first == "(" ? .open : .close, rest.prefix(1))
        rest = rest.dropFirst()
      } else if let sign = MetaCondition.Comparison.at(rest.unicodeScalars) {
        token = (.sign(sign), rest.prefix(sign.rawValue.count))
        rest = rest.dropFirst(sign.rawValue.count)
      } else {
        let word = rest.prefix { !" \n\t()\"=!<>~".contains($0) }
        guard !word.isEmpty else {
          throw DeviceExpression.Fault(reason: "has `\(first)` at character \(place); signs are = != < <= > >= ~")
        }
        token = (.word, word)
        rest = rest[word.endIndex...]
      }
      tokens.append(DeviceToken(kind: token.kind, text: String(token.text), place: place))
    }
  }
}

/// A condition on one fact of a device: `tag.region = eu`, `version < 2.10`, `seen > 7d`, `tag.lab`.
///
/// Of texts `=` takes `*` for any characters, and `~` is a part. `seen` and `crash` are ages. Like those of `MetaCondition`, no
/// comparison holds for a fact that is missing, not even `!=`.
struct DeviceCondition: Sendable, Equatable {
  private enum Fact: String, CaseIterable {
    case device, tag, app, version, namespace, seen, crash, waiting, lost, packets

    static let names = allCases.map { $0 == .tag ? "tag.NAME" : $0.rawValue }.joined(separator: ", ")

    var isAge: Bool { self == .seen || self == .crash }
    var isNumber: Bool { [.waiting, .lost, .packets].contains(self) }
  }

  private let fact: Fact
  private let tag: String
  private let comparison: MetaCondition.Comparison
  private let text: String
  /// Of an age, in milliseconds, or of a count.
  private let number: Int64
  private let version: CrashVersion?

  /// - Throws: a fault that names the fact.
  init(
    _ name: String, _ comparison: MetaCondition.Comparison, _ value: String
  ) throws(DeviceExpression.Fault) {
    tag = name.hasPrefix("tag.") ? String(name.dropFirst("tag.".count)) : ""
    guard let fact = tag.isEmpty ? Fact(rawValue: name) : .tag, fact != .tag || DeviceTags.isName(tag) else {
      throw .init(reason: "has the fact `\(name.prefix(64))`; facts are \(Fact.names)")
    }
    (self.fact, self.comparison, text) = (fact, comparison, value)
    let isOrdered = [.less, .atMost, .more, .atLeast].contains(comparison)
    guard !isOrdered || fact.isAge || fact.isNumber || fact == .version else {
      throw .init(reason: "compares `\(name)` by \(comparison.rawValue); it takes =, != and ~")
    }
    version = isOrdered && fact == .version ? CrashVersion(value[...]) : nil
    guard version != nil || !isOrdered || fact != .version else {
      throw .init(reason: "compares `version` with `\(value.prefix(32))`; a version begins with numbers, such as 2.10")
    }
    guard comparison != .exists, fact.isAge || fact.isNumber else {
      number = 0
      return
    }
    guard comparison != .contains else { throw .init(reason: "compares `\(name)` by ~; it takes = != < <= > >=") }
    let found = fact.isAge ? WrittenTime.span(value).map { $0 * 1000 } : Int64(value)
    guard let found else {
      let wanted = fact.isAge ? "an age such as 90s, 15m, 24h, 7d or 2w" : "a whole number"
      throw .init(reason: "compares `\(name)` with `\(value.prefix(32))`, must be \(wanted)")
    }
    number = found
  }

  fileprivate func names(_ device: String) -> Bool { fact == .device && text.utf8.elementsEqual(device.utf8) }

  /// - Parameter now: milliseconds since 1970.
  func holds(for device: DeviceSummary, now: Int64) -> Bool {
    switch fact {
    case .device: holds(text: device.device)
    case .app: holds(text: device.app)
    case .tag: device.tags[tag].map { holds(text: $0) } ?? false
    case .namespace:
      comparison == .notEqual
        ? device.namespaces.allSatisfy { holds(text: $0) } : device.namespaces.contains { holds(text: $0) }
    case .version: holds(version: device.version)
    case .seen: comparison.holds(now - device.seenTime, number)
    case .crash: device.crashTime.map { comparison.holds(now - $0, number) } ?? false
    case .waiting: comparison.holds(Int64(device.sums.waiting), number)
    case .lost: comparison.holds(Int64(device.sums.lost), number)
    case .packets: comparison.holds(Int64(device.packets), number)
    }
  }

  private func holds(text given: String) -> Bool {
    guard !given.isEmpty else { return false }
    return switch comparison {
    case .equal: Rollout.Reach.matches(given, text)
    case .notEqual: !Rollout.Reach.matches(given, text)
    case .contains: given.utf8.contains(text.utf8)
    default: true
    }
  }

  private func holds(version given: String) -> Bool {
    guard let version else { return holds(text: given) }
    return CrashVersion(given[...]).map { comparison.holds($0, version) } ?? false
  }
}
