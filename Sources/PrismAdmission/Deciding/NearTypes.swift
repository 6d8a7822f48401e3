import PrismProtocol

/// Finds the known types that look most like a name, for the refusal of an unknown type. Its time is linear in the lengths of
/// the names, because any client can cause it. Pure.
struct NearTypes {
  /// Types that are compared, and types that are named.
  static let comparedMax = 32, namedMax = 3
  /// Bytes of a name that are compared.
  private static let bytesMax = 64

  private let types: [(text: String, folded: [UInt8])]
  /// Of the file that lists the types.
  private let path: String

  init(_ types: [String], path: String) {
    self.path = path
    self.types = types.prefix(Self.comparedMax).map { ($0, Self.folded($0)) }
  }

  /// The types that are meant, perhaps, and how to add this one.
  func advice(on name: String) -> String {
    let known = nearest(to: name).joined(separator: ", ") + (types.count > Self.namedMax ? ", …" : "")
    return "known are \(known)" + (ReportType(name).map { "; add {type: \($0)} to it in \(path)" } ?? "")
  }

  /// The nearest first.
  func nearest(to name: String) -> [String] {
    let wanted = Self.folded(name)
    let scored = types.map { (text: $0.text, score: Self.score(wanted, $0.folded)) }.enumerated()
    let sorted = scored.sorted { ($1.element.score, $0.offset) < ($0.element.score, $1.offset) }
    return sorted.prefix(Self.namedMax).map(\.element.text)
  }

  /// Equal bytes at both ends, less what differs.
  private static func score(_ a: [UInt8], _ b: [UInt8]) -> Int {
    let shorter = min(a.count, b.count)
    var (front, back) = (0, 0)
    while front < shorter, a[front] == b[front] { front += 1 }
    while back < shorter - front, a[a.count - 1 - back] == b[b.count - 1 - back] { back += 1 }
    return 2 * (front + back) - max(a.count, b.count)
  }

  /// Upper and lower case are equal.
  private static func folded(_ name: String) -> [UInt8] {
    name.utf8.prefix(bytesMax).map { UInt8(ascii: "A")...UInt8(ascii: "Z") ~= $0 ? $0 | UInt8(ascii: " ") : $0 }
  }
}
