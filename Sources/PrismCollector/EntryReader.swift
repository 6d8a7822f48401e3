import PrismConfig

/// The entries of one map of a collector's file.
struct EntryReader {
  private let entries: [YAMLEntry]
  var faults: [String] = []

  init(_ node: YAMLNode) { if case .mapping(let entries) = node.value { self.entries = entries } else { entries = [] } }

  func has(_ key: String) -> Bool { entries.contains { $0.key == key } }

  func text(_ key: String) -> String? {
    guard case .scalar(let scalar) = entries.first(where: { $0.key == key })?.node.value else { return nil }
    return scalar.text
  }

  mutating func texts(_ key: String) -> [String] {
    guard has(key) else { return [] }
    guard case .sequence(let nodes) = entries.first(where: { $0.key == key })?.node.value else {
      faults.append("\(key): must be a list of texts")
      return []
    }
    return nodes.compactMap { if case .scalar(let scalar) = $0.value { scalar.text } else { nil } }
  }

  mutating func number(_ key: String, _ range: ClosedRange<Int>) -> Int? {
    guard has(key) else { return nil }
    if let number = text(key).flatMap({ Int($0) }), range.contains(number) { return number }
    faults.append("\(key): must be a whole number from \(range.lowerBound) to \(range.upperBound)")
    return nil
  }

  mutating func refuseOthers(than known: [String]) {
    for entry in entries where !known.contains(entry.key) {
      faults.append("\(entry.key): unknown key; known are \(known.sorted().joined(separator: ", "))")
    }
  }
}
