import PrismProtocol

/// Which common contexts stand in the database, and under which id.
///
/// A context is known by its object, held weakly: a connection that ends takes it along, and a new object at the same
/// address is not mistaken for it.
struct ContextCache {
  /// Rows of a context that carry it themselves before it gets a row of its own: a client that sends one report and
  /// leaves should not cost the database two rows.
  static let ownRowsMax = 8

  struct Use {
    weak var lifetime: CommonContext.Lifetime?
    var namespace: Int
    var rows = 0
    /// nil: no row of its own yet.
    var id: Int64?
  }

  private struct Key: Hashable {
    var object: ObjectIdentifier
    var namespace: Int
  }

  private var uses: [Key: Use] = [:]
  private var usesBeforeSweep = 64
  /// A context as it stands in the database.
  struct Stored {
    let members: [UInt8]
    let owner: RowOwner
  }

  /// By id, for building packets.
  private var stored: [Int64: Stored] = [:]
  /// By id: small, and asked for with every row that is counted or evicted.
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

  /// Ids of contexts whose connection lives: rows may yet refer to them.
  var idsInUse: Set<Int64> { Set(uses.values.filter { $0.lifetime != nil }.compactMap(\.id)) }

  func stored(_ id: Int64) -> Stored? { stored[id] }
  func owner(of id: Int64) -> RowOwner? { owners[id] }

  mutating func remember(_ context: Stored, of id: Int64) {
    if stored.count >= 64 { stored.removeAll() }
    stored[id] = context
    if owners.count >= 16_384 { owners.removeAll() }
    owners[id] = context.owner
  }
}
