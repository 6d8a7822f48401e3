import PrismProtocol

/// Which contexts are in the database, and under which id.
///
/// A context is known by its number, which is never used again. Its lifetime is held weakly, apart from what each commit
/// looks at: to copy a weak reference takes longer than all the rest.
struct ContextCache {
  /// This number of rows carry their context themselves before the context gets a row of its own. A client that sends
  /// one report and leaves should not cost the database two rows.
  static let ownRowsMax = 8
  private static let storedMax = 64
  private static let ownersMax = 16_384

  struct Use {
    var rows = 0
    /// nil: it has no row of its own yet.
    var id: Int64?
  }

  private struct Key: Hashable {
    var context: UInt64
    var namespace: Int
  }

  private struct WeakLifetime { weak var object: CommonContext.Lifetime? }

  private var uses: [Key: Use] = [:]
  /// By the number of the context.
  private var lifetimes: [UInt64: WeakLifetime] = [:]
  private var lifetimesBeforeSweep = 64
  /// By id, for building packets.
  private var stored: [Int64: ContextRecord] = [:]
  /// By id: small, and needed for every row that is counted or evicted.
  private var owners: [Int64: RowOwner] = [:]
  /// Of looking for unused ones.
  var sweeps = ContextSweeps()

  /// Counts rows that come with `context`. - Returns: how it is used, these rows included.
  mutating func add(_ rows: Int, of context: CommonContext, namespace: Int) -> Use {
    let key = Key(context: context.number, namespace: namespace)
    guard let place = uses.index(forKey: key) else {
      let use = Use(rows: rows)
      uses[key] = use
      if lifetimes[context.number] == nil { watch(context) }
      return use
    }
    uses.values[place].rows += rows
    return uses.values[place]
  }

  /// It has a row of its own now.
  mutating func set(id: Int64, of context: CommonContext, namespace: Int) {
    uses[Key(context: context.number, namespace: namespace)]?.id = id
  }

  private mutating func watch(_ context: CommonContext) {
    lifetimes[context.number] = WeakLifetime(object: context.lifetime)
    guard lifetimes.count > lifetimesBeforeSweep else { return }
    lifetimes = lifetimes.filter { $0.value.object != nil }
    uses = uses.filter { lifetimes[$0.key.context] != nil }
    lifetimesBeforeSweep = max(64, lifetimes.count * 2)
  }

  /// Ids of contexts whose connection lives: more rows may refer to them.
  var idsInUse: Set<Int64> {
    Set(uses.filter { lifetimes[$0.key.context]?.object != nil }.compactMap(\.value.id))
  }

  func stored(_ id: Int64) -> ContextRecord? { stored[id] }
  func owner(of id: Int64) -> RowOwner? { owners[id] }

  mutating func remember(_ context: ContextRecord) {
    if stored.count >= Self.storedMax { stored.removeAll() }
    stored[context.id] = context
    if owners.count >= Self.ownersMax { owners.removeAll() }
    owners[context.id] = context.owner
  }
}

/// A walk over all rows of a namespace, in slices, to find the contexts that no row refers to. Rows of one user may
/// stay long after those of thousands of sessions were evicted.
struct ContextSweep {
  let namespace: Int
  /// Contexts that stay: of sessions that lived when it began, and of rows that it met.
  var used: Set<Int64>
  /// Contexts from this id on came after it began.
  let end: Int64
  /// Kinds and priorities that are still to be walked, the current one last.
  var walks: [RowPlace]
  /// The last context that was looked at, after all rows were.
  var lastContext: Int64 = 0

  init(_ namespace: Int, _ queues: [QueueID], inUse: Set<Int64>, end: Int64) {
    (self.namespace, used, self.end) = (namespace, inUse, end)
    walks = RowPlace.begins(of: queues)
  }
}

/// How far looking for unused contexts has come.
struct ContextSweeps {
  /// nil if no sweep runs.
  var current: ContextSweep?
  /// By namespace: how many contexts are worth a sweep.
  var countsBefore: [Int: Int] = [:]
  /// The id that the next context was to have when no namespace had enough of them.
  var nextContextSeen: Int64 = 0
  /// The last context that `UnusedContexts.forget` looked at.
  var lastForgotten: Int64 = 0
}
