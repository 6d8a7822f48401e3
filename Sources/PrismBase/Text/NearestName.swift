/// The name that was probably meant.
public enum NearestName {
  /// nil if no name is near: more than a third of the letters (at least one, at most three) would be wrong. Upper and
  /// lower case are equal. At least three letters with which a name begins count as that name.
  public static func of(_ name: String, among names: some Sequence<String>) -> String? {
    let wanted = Array(name.lowercased().prefix(128).utf8)
    if let same = names.first(where: { $0.lowercased().utf8.elementsEqual(wanted) }) { return same }
    if wanted.count >= 3, let whole = names.first(where: { $0.lowercased().utf8.starts(with: wanted) }) { return whole }
    let farthest = min(3, max(1, wanted.count / 3))
    var nearest: (name: String, distance: Int)?
    for name in names {
      let letters = Array(name.lowercased().utf8)
      // The distance is at least the difference in length: most names need no table.
      guard abs(letters.count - wanted.count) <= farthest else { continue }
      let distance = distance(wanted, letters)
      if distance <= farthest, distance < nearest?.distance ?? .max { nearest = (name, distance) }
    }
    return nearest?.name
  }

  /// Letters inserted, left out, replaced, or swapped with their neighbour (optimal string alignment).
  static func distance(_ a: [UInt8], _ b: [UInt8]) -> Int {
    var before: [Int] = []
    var last = Array(0...b.count)
    for i in a.indices {
      var row = [i + 1]
      for j in b.indices {
        let replaced = last[j] + (a[i] == b[j] ? 0 : 1)
        var best = min(replaced, last[j + 1] + 1, row[j] + 1)
        if i > 0, j > 0, a[i] == b[j - 1], a[i - 1] == b[j] { best = min(best, before[j - 1] + 1) }
        row.append(best)
      }
      (before, last) = (last, row)
    }
    return last[b.count]
  }
}
