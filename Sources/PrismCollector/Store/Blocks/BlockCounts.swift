import PrismProtocol

/// How many reports of a block were made and received in the same half hours, by namespace, kind and type: what its head has under
/// `types`. Questions that ask for no more need no block.
struct BlockCounts {
  /// Milliseconds: the bars of the page's charts of a day are as wide, and wider ones are multiples.
  static let slot: Int64 = 1_800_000
  private static let (typesMax, textBytesMax, namesBytesMax) = (256, 16_384, 8192)

  private struct Name: Hashable { let namespace: NamespaceName, kind: RowKind, type: ArraySlice<UInt8> }
  /// Slots since 1970.
  private struct Slots: Hashable, Comparable {
    let created: Int64, received: Int64
    static func < (a: Self, b: Self) -> Bool { (a.created, a.received) < (b.created, b.received) }
  }

  private var counts: [Name: [Slots: Int]] = [:]
  /// Of the last report; and how many like it came in a row that are not among `counts` yet.
  private var (name, slots, count): (Name?, Slots, Int) = (nil, Slots(created: 0, received: 0), 0)

  mutating func add(_ type: ArraySlice<UInt8>, _ stream: StreamID, created: Int64, received: Int64) {
    let slots = Slots(created: created / Self.slot, received: received / Self.slot)
    guard self.slots != slots || name?.type != type || name?.kind != stream.kind || name?.namespace != stream.namespace
    else {
      count += 1
      return
    }
    addLast()
    (name, self.slots, count) = (Name(namespace: stream.namespace, kind: stream.kind, type: type), slots, 1)
  }

  private mutating func addLast() {
    if let name { counts[name, default: [:]][slots, default: 0] += count }
  }

  /// JSON: by namespace and kind the types, each with a list of three numbers again and again: slots since the first of
  /// `createdFrom`, slots since that of `receivedFrom`, reports. Where that is too long, it is a list of the types.
  /// - Returns: nil: there are too many types, or too long ones.
  mutating func text(createdFrom created: Int64, receivedFrom received: Int64) -> String? {
    addLast()
    count = 0
    guard counts.count <= Self.typesMax else { return nil }
    let first = Slots(created: created / Self.slot, received: received / Self.slot)
    // The slot of 1970 would be twice as wide with times before it.
    let text =
      created < 0 || received < 0 || hasTwins
      ? nil
      : text { types in
        .object(types.map { .init($0.type, .array(Self.numbers($0.counts, since: first).map { .int($0) })) })
      }
    if let text, text.utf8.count <= Self.textBytesMax { return text }
    let names = self.text { .array($0.map { .string($0.type) }) }
    return names.utf8.count > Self.namesBytesMax ? nil : names
  }

  /// Two types are one text for Swift, though their bytes differ: an object has such a key once.
  private var hasTwins: Bool {
    guard counts.count > 1 else { return false }
    return Set(counts.keys.map { "\($0.namespace) \($0.kind.name) \(String(decoding: $0.type, as: UTF8.self))" }).count
      < counts.count
  }

  private static func numbers(_ counts: [Slots: Int], since first: Slots) -> [Int64] {
    counts.sorted { $0.key < $1.key }.flatMap {
      [$0.key.created - first.created, $0.key.received - first.received, Int64($0.value)]
    }
  }

  private func text(_ list: ([(type: String, counts: [Slots: Int])]) -> JSONValue) -> String {
    let namespaces = Dictionary(grouping: counts) { $0.key.namespace.text }.sorted { $0.key < $1.key }
    return JSONValue.object(
      namespaces.map { namespace, counts in
        let kinds = Dictionary(grouping: counts) { $0.key.kind.name }.sorted { $0.key < $1.key }
        return .init(
          namespace,
          .object(
            kinds.map { kind, counts in
              let types = counts.map { (type: String(decoding: $0.key.type, as: UTF8.self), counts: $0.value) }
              return .init(kind, list(types.sorted { $0.type < $1.type }))
            }))
      }
    ).text
  }

  /// The types that texts of heads name, by namespace and name.
  static func types(_ texts: some Sequence<String>) -> [TypeName] {
    var found: Set<TypeName> = []
    for text in texts {
      for namespace in (try? JSONValue(parsing: text))?.object ?? [] {
        for kind in namespace.value.object ?? [] {
          let types = kind.value.object?.map(\.key) ?? kind.value.array?.compactMap(\.string) ?? []
          for type in types { found.insert(TypeName(namespace: namespace.key, type: type)) }
        }
      }
    }
    return found.sorted { ($0.namespace, $0.type) < ($1.namespace, $1.type) }
  }
}

extension BlockHead {
  /// Reports of one namespace, kind and type.
  struct Cell {
    let namespace: String, kind: String, type: String
    /// Between which times they were made and received.
    let created: ClosedRange<Int64>, received: ClosedRange<Int64>
    let count: Int
  }

  /// Whether `cells` is not nil, as far as a look tells.
  var seemsCounted: Bool { types.map { !$0.contains("[\"") } ?? false }

  /// All reports of the block; nil: it was written without counts, or they are not those of its rows.
  var cells: [Cell]? {
    guard let text = types, let namespaces = (try? JSONValue(parsing: text))?.object else { return nil }
    var (cells, left) = ([Cell](), rows)
    for namespace in namespaces {
      for kind in namespace.value.object ?? [] {
        guard let types = kind.value.object else { return nil }
        for type in types {
          let numbers = type.value.array?.compactMap(\.int) ?? []
          for place in stride(from: 0, to: numbers.count - 2, by: 3) {
            let count = numbers[place + 2]
            guard let made = Self.times(numbers[place], of: created),
              let came = Self.times(numbers[place + 1], of: received), 1...max(1, left) ~= count
            else { return nil }
            left -= count
            cells.append(
              Cell(
                namespace: namespace.key, kind: kind.key, type: type.key, created: made, received: came, count: count))
          }
        }
      }
    }
    return left == 0 ? cells : nil
  }

  /// - Parameter place: of a slot, behind that with the first time of the block.
  private static func times(_ place: Int, of times: ClosedRange<Int64>) -> ClosedRange<Int64>? {
    let first = times.lowerBound / BlockCounts.slot
    guard times.lowerBound >= 0, 0...times.upperBound / BlockCounts.slot - first ~= Int64(place) else { return nil }
    let start = (first + Int64(place)) * BlockCounts.slot
    let end = start + min(times.upperBound - start, BlockCounts.slot - 1)
    return max(start, times.lowerBound)...end
  }
}
