import PrismProtocol

/// The namespaces whose switches a connection watches, each with the last state that it got. Pure.
struct Watches: Sendable {
  /// Of one connection.
  static let countMax = 64

  private var sent: [String: NamespaceSwitches] = [:]
  /// The rules are others than those of the last states.
  var mayHaveChanges = false

  var isEmpty: Bool { sent.isEmpty }

  /// Bytes that it holds in memory, about: asked for in each turn of the connection.
  private(set) var bytes = 0

  /// Begins to watch the namespace of `object`, or asks for its state again.
  /// - Throws: `bad_request`, `unknown_namespace`, `forbidden`; then nothing is watched in addition.
  mutating func begin(_ object: Span<UInt8>, _ session: inout Session) throws(Refusal) -> NamespaceSwitches {
    let name = try Self.namespace(object)
    guard sent[name] != nil || sent.count < Self.countMax else {
      throw Refusal(.badRequest, "this connection watches \(Self.countMax) namespaces; open another one for more")
    }
    let switches = try session.switches(of: name)
    keep(switches)
    return switches
  }

  /// Takes the states that are others than the last ones, by name.
  mutating func takeChanges(_ session: inout Session) -> [NamespaceSwitches] {
    mayHaveChanges = false
    var changes: [NamespaceSwitches] = []
    for (name, before) in sent.sorted(by: { $0.key < $1.key }) {
      // A namespace that is gone, or closed to this sender, takes nothing.
      let generation = session.rules.generation
      let now =
        (try? session.switches(of: name))
        ?? NamespaceSwitches(namespace: name, generation: generation, isGather: false, types: [])
      guard !now.says(the: before) else { continue }
      keep(now)
      changes.append(now)
    }
    return changes
  }

  private mutating func keep(_ switches: NamespaceSwitches) {
    func bytes(_ switches: NamespaceSwitches) -> Int { switches.types.reduce(128) { $0 + 16 + $1.utf8.count } }
    let before = sent.updateValue(switches, forKey: switches.namespace)
    self.bytes += bytes(switches) - (before.map(bytes) ?? 0)
  }

  private static func namespace(_ object: Span<UInt8>) throws(Refusal) -> String {
    let value: JSONValue
    do { value = try JSONValue(parsing: object.withUnsafeBufferPointer { Array($0) }) } catch {
      throw Refusal(.badRequest, "`watch`: \(error.reason)")
    }
    var name = NamespaceName.prism.text
    for member in value.object ?? [] {
      switch member.key {
      case "namespace":
        guard let text = member.value.string else { throw Refusal(.badRequest, "`watch.namespace` must be a string") }
        name = text
      case "configuration": continue
      default:
        throw Refusal(
          .badRequest, "unknown field `watch.\(member.key.prefix(64))`; known are namespace, configuration")
      }
    }
    guard value["configuration"]?.bool == true else {
      throw Refusal(.badRequest, "`watch.configuration` must be true")
    }
    return name
  }
}

extension Session {
  /// - Throws: `unknown_namespace`, `forbidden`.
  fileprivate mutating func switches(of name: String) throws(Refusal) -> NamespaceSwitches {
    let text = Array(name.utf8)
    let range = ScannedString(range: 0..<text.count, hasEscapes: false)
    let namespace = try namespace(range, in: text.span)
    return NamespaceSwitches(
      namespace: name, generation: rules.generation, isGather: namespace.isGather, types: namespace.typeNames)
  }
}
