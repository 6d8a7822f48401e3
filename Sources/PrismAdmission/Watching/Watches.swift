import PrismProtocol

/// The namespaces whose switches a connection watches, and what it was told last. Pure.
struct Watches: Sendable {
  /// Of one connection.
  static let countMax = 64

  private var told: [String: NamespaceSwitches] = [:]

  var isEmpty: Bool { told.isEmpty }

  /// Bytes that it holds in memory, about.
  var bytes: Int { told.values.reduce(0) { $0 + $1.types.reduce(128) { $0 + 16 + $1.utf8.count } } }

  /// Begins to watch the namespace of `object`, or tells of it again.
  /// - Throws: `bad_request`, `unknown_namespace`, `forbidden`; then nothing is watched in addition.
  mutating func begin(_ object: Span<UInt8>, _ session: inout Session) throws(Refusal) -> NamespaceSwitches {
    let name = try Self.namespace(object)
    guard told[name] != nil || told.count < Self.countMax else {
      throw Refusal(.badRequest, "this connection watches \(Self.countMax) namespaces; open another one for more")
    }
    let switches = try session.switches(of: name)
    told[name] = switches
    return switches
  }

  /// What `session` says otherwise than was told, by name; from now on it is told.
  mutating func takeChanges(_ session: inout Session) -> [NamespaceSwitches] {
    var changes: [NamespaceSwitches] = []
    for (name, before) in told.sorted(by: { $0.key < $1.key }) {
      // A namespace that is gone, or closed to this sender, takes nothing.
      let generation = session.rules.generation
      let now =
        (try? session.switches(of: name))
        ?? NamespaceSwitches(namespace: name, generation: generation, isGather: false, types: [])
      guard !now.says(the: before) else { continue }
      told[name] = now
      changes.append(now)
    }
    return changes
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
