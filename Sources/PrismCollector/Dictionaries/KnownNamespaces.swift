import PrismProtocol

/// Namespaces of packets that came, and of questions that came before. A question proves nothing: anybody who knows the
/// id of a key may ask, for any name.
struct KnownNamespaces: Sendable {
  /// Past it another one is forgotten, until its next packet.
  static let provenMax = 1024
  /// Past it a question is forgotten. Its device asks again after an hour.
  static let askedMax = 64

  private var proven: Set<NamespaceName> = []
  private var asked: Set<NamespaceName> = []

  func isProven(_ namespace: NamespaceName) -> Bool { proven.contains(namespace) }

  /// Notes a namespace of which its key proved a packet. - Returns: true: its devices asked before.
  @discardableResult mutating func addProven(_ namespace: NamespaceName) -> Bool {
    guard !proven.contains(namespace) else { return false }
    if proven.count >= Self.provenMax { proven.removeFirst() }
    proven.insert(namespace)
    return asked.remove(namespace) != nil
  }

  mutating func addAsked(_ namespace: NamespaceName) {
    if asked.count >= Self.askedMax { asked.removeFirst() }
    asked.insert(namespace)
  }
}
