/// The table "Rooms" of docs/architecture.md.
enum ArchitectureTable {
  /// Each module with those that it may import, without the system's.
  static let rooms: [String: Set<String>] = {
    var result: [String: Set<String>] = [:]
    for line in (SourceTree.read("docs/architecture.md") ?? "").split(separator: "\n") where line.hasPrefix("| `") {
      let cells = line.split(separator: "|", omittingEmptySubsequences: false)
      guard cells.count == 5 else { continue }
      let names = { (cell: Substring) in cell.matches(of: /`([\w-]+)`/).map { String($0.1) } }
      for room in names(cells[1]) { result[room] = Set(names(cells[3])) }
    }
    return result
  }()
}
