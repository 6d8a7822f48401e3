import PrismProtocol

/// Which contexts are in the database, and under which id.
///
/// A context is known by its object, which is held weakly: it goes with its connection, and a new object at the same
/// address is not mistaken for it.
struct ContextCache {
  /// This number of rows carry their context themselves before the context gets a row of its own. A client that sends
  /// one report and leaves should not cost the database two rows.
  static let ownRowsMax = 8
  private static let storedMax = 64
  private static let ownersMax = 16_384

  struct Use {
    weak var lifetime: CommonContext.Lifetime?
    var namespace: Int
    var rows = 0
    /// nil: it has no row of its own yet.
    var id: Int64?
  }

  private struct Key: Hashable {
    var object: ObjectIdentifier
    var namespace: Int
  }

  private var uses: [Key: Use] = [:]
  private var usesBeforeSweep = 64
  /// By id, for building packets.
  private var stored: [Int64: ContextRecord] = [:]
  /// By id: small, and needed for every row that is counted or evicted.
  private var owners: [Int64: RowOwner] = [:]

  func use(of context: CommonContext, namespace: Int) -> Use {
    let use = uses[Key(object: ObjectIdentifier(context.lifetime), namespace: namespace)]
    if let use, use.lifetime === context.lifetime { return use }
    return Use(lifetime: context.lifetime, namespace: namespace)
  }

  mutating func set(_ use: Use, of context: CommonContext) {
    uses[Key(object: ObjectIdentifier(context.lifetime), namespace: use.namespace)] = use
    if uses.count > usesBeforeSweep {
      uses = uses.filter { $0.value.lifetime != nil }
      usesBeforeSweep = max(64, uses.count * 2)
    }
  }

  /// Ids of contexts whose connection lives: more rows may refer to them.
  var idsInUse: Set<Int64> { Set(uses.values.filter { $0.lifetime != nil }.compactMap(\.id)) }

  func stored(_ id: Int64) -> ContextRecord? { stored[id] }
  func owner(of id: Int64) -> RowOwner? { owners[id] }

  mutating func remember(_ context: ContextRecord) {
    if stored.count >= Self.storedMax { stored.removeAll() }
    stored[context.id] = context
    if owners.count >= Self.ownersMax { owners.removeAll() }
    owners[context.id] = context.owner
  }
}
