import PrismProtocol

/// Something that has a place in memory.
protocol PlacedValue: Sendable {
  /// The part of the budget that it takes.
  var weight: Int { get }
  /// The things that are left out with it.
  var count: Int { get }
}

/// The values that have a place in memory, within a budget. Past it a twentieth is given up, the oldest first. They are of devices that
/// alone made more than a tenth, and half as much as the one with most; then of namespaces with more than an equal share.
struct FairPlaces<Key: Hashable & Sendable, Value: PlacedValue>: Sendable {
  struct Place: Sendable {
    var value: Value
    let namespace: String
    /// The hash of the one that made it; nil: several did.
    fileprivate(set) var device: Int?
    /// It grows with each change.
    fileprivate(set) var age: Int64
    fileprivate var weight = 0
  }

  private static var namespacesMax: Int { 1000 }

  let budget: Int
  /// Of the least value.
  private let leastWeight: Int
  private(set) var all: [Key: Place] = [:]
  private(set) var weight = 0
  /// The counts of values that gave up their place, by namespace; "" for further ones.
  private(set) var leftOut: [String: Int] = [:]

  init(budget: Int, leastWeight: Int = 1) { (self.budget, self.leastWeight) = (budget, leastWeight) }

  /// The same without values.
  var empty: Self { Self(budget: budget, leastWeight: leastWeight) }

  /// - Parameters:
  ///   - value: makes it if the key has no value yet.
  ///   - isKept: whether a value gives its place up only if all do.
  /// - Returns: whether others gave up their places.
  @discardableResult mutating func change(
    _ key: Key, of namespace: String, by device: String, at age: Int64, else value: @autoclosure () -> Value,
    keeping isKept: (Key) -> Bool = { _ in false }, _ body: (inout Value) -> Void
  ) -> Bool {
    let device = device.hashValue
    var place = all.removeValue(forKey: key) ?? Place(value: value(), namespace: namespace, device: device, age: age)
    body(&place.value)
    if place.device != device { place.device = nil }
    place.age = max(place.age, age)
    put(place, key)
    guard weight > budget else { return false }
    makeRoom(isKept)
    return true
  }

  /// - Parameter body: returns whether the value stays.
  mutating func change(_ key: Key, _ body: (inout Value) -> Bool) {
    guard var place = all.removeValue(forKey: key) else { return }
    let stays = body(&place.value)
    if stays { put(place, key) } else { weight -= place.weight }
  }

  private mutating func put(_ place: Place, _ key: Key) {
    var place = place
    weight -= place.weight
    place.weight = max(leastWeight, place.value.weight)
    weight += place.weight
    all[key] = place
  }

  private mutating func makeRoom(_ isKept: (Key) -> Bool) {
    let wanted = budget - max(leastWeight, budget / 20)
    var (namespaces, devices) = ([String: Int](), [Int: Int]())
    for place in all.values {
      namespaces[place.namespace, default: 0] += place.weight
      if let device = place.device { devices[device, default: 0] += place.weight }
    }
    let (share, alone) = (wanted / max(1, namespaces.count), max(budget / 10, (devices.values.max() ?? 0) / 2))
    let order = all.map { (key: $0.key, age: $0.value.age) }.sorted { $0.age < $1.age }.map(\.key)
    for step in 0..<3 {
      for key in order where weight > wanted {
        guard let place = all[key], step == 2 || !isKept(key) else { continue }
        let ofDevice = place.device.flatMap { devices[$0] } ?? 0
        let isOver = step == 0 ? ofDevice > alone : step == 2 || namespaces[place.namespace] ?? 0 > share
        guard isOver else { continue }
        all[key] = nil
        weight -= place.weight
        namespaces[place.namespace]? -= place.weight
        if let device = place.device { devices[device]? -= place.weight }
        let isNamed = leftOut[place.namespace] != nil || leftOut.count < Self.namespacesMax
        leftOut[isNamed ? place.namespace : "", default: 0] += place.value.count
      }
    }
  }

  /// The counts of values that gave up their place in the namespaces of a reader, by namespace.
  func leftOut(_ scope: Scope) -> [String: Int] { leftOut.filter { scope.has($0.key) } }
}

/// As the API shows what was left out, by namespace.
struct LeftOut: Sendable {
  private static let namedMax = 20

  let byNamespace: [String: Int]

  var count: Int { byNamespace.values.reduce(0, +) }
  /// The namespaces with most.
  var json: [JSONValue] {
    byNamespace.sorted { ($1.value, $0.key) < ($0.value, $1.key) }.prefix(Self.namedMax).map {
      JSONValue(["namespace": $0.key, "count": $0.value])
    }
  }
}
