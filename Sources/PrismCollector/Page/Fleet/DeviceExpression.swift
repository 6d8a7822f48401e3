import PrismHTTP
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
  }

  /// A fault of the text, in words.
  struct Fault: Error, Equatable {
    let reason: String
  }

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
      } else if let sign = Self.sign(rest) {
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

  private static func sign(_ rest: Substring) -> MetaCondition.Comparison? {
    MetaCondition.Comparison.allCases.filter { $0 != .exists && rest.hasPrefix($0.rawValue) }
      .max { $0.rawValue.count < $1.rawValue.count }
  }
}

extension PageRequest {
  /// The devices of `where`; nil: all. - Throws: 400 for another expression.
  var devices: DeviceExpression? {
    get throws(CollectorRefusal) {
      guard let text = http.parameter("where"), !text.isEmpty else { return nil }
      do throws(DeviceExpression.Fault) { return try DeviceExpression(text) } catch {
        throw CollectorRefusal(400, "where: the expression \(error.reason)")
      }
    }
  }
}
