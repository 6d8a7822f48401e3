/// The ids of one `client_ids` that are known by time: of reports that were delivered or counted on others, and of runs. All
/// others go with their rows, which the quota bounds.
///
/// The bytes are counted when a commit first asks, and follow each change from then on.
struct KnownIDs {
  /// Of each user.
  private(set) var bytes: [RowOwner: Int] = [:]
  /// By user: the held time before which no id is left, so that each pass looks at new ones only.
  private(set) var cleared: [RowOwner: Int64] = [:]

  var sum: Int { bytes.values.reduce(0, +) }

  /// The bytes of an id on the disk: it is in the table and in an index, whose pages are not full.
  static func bytes(ofKey count: Int) -> Int { bytes(1, keys: count) }
  static func bytes(_ ids: Int, keys bytes: Int) -> Int { 64 * ids + 3 * bytes }

  mutating func add(_ count: Int, of owner: RowOwner) {
    let left = bytes[owner, default: 0] + count
    bytes[owner] = left > 0 ? left : nil
    if left <= 0 { cleared[owner] = nil }
  }

  mutating func clear(_ owner: RowOwner, before time: Int64) { cleared[owner] = time }
}
