import PrismProtocol

/// What a database can't be read without, kept a second time in a small file beside it: where its tables begin, and the
/// names that rows know by number. One damaged page of the schema would otherwise make every row anonymous.
///
/// Written anew whenever a name comes; only used where the database's own word can't be read.
struct TableOfContents: Equatable, Sendable {
  static let suffix = ".toc"
  /// With 1,000 namespaces some 100 KiB.
  private static let bytesMax = 4 * 1024 * 1024

  var epoch: String
  /// A table's first page by its name.
  var roots: [String: Int] = [:]
  var namespaces: [Int: NamespaceName] = [:]
  var types: [Int64: ReportType] = [:]

  init(_ connection: SQLiteConnection, _ state: StoreState, epoch: String) throws(SQLiteError) {
    (self.epoch, namespaces, types) = (epoch, state.namespaces, state.types)
    var roots: [String: Int] = [:]
    try connection.prepare("SELECT name, rootpage FROM sqlite_schema WHERE type = 'table'").forEachRow {
      roots[$0.text(0)] = $0.int(1)
    }
    self.roots = roots
  }

  /// nil: there is none, or it is not what was written.
  init?(path: String) {
    guard let text = SmallStateFile.read(path, bytesMax: Self.bytesMax) else { return nil }
    let lines = text.split(separator: "\n").map { $0.split(separator: " ").map { String($0) } }
    guard let last = lines.last, last.count == 2, last[0] == "sum", let first = lines.first, first.count == 2 else {
      return nil
    }
    epoch = first[1]
    for line in lines.dropFirst().dropLast() where line.count == 3 {
      guard let number = Int(line[1]) else { return nil }
      switch line[0] {
      case "table": roots[line[2]] = number
      case "namespace": namespaces[number] = NamespaceName(line[2])
      case "type": types[Int64(number)] = ReportType(line[2])
      default: return nil
      }
    }
    guard self.text == text else { return nil }
  }

  private var text: String {
    let body =
      ["epoch \(epoch)"] + roots.sorted { $0.key < $1.key }.map { "table \($0.value) \($0.key)" }
      + namespaces.sorted { $0.key < $1.key }.map { "namespace \($0.key) \($0.value)" }
      + types.sorted { $0.key < $1.key }.map { "type \($0.key) \($0.value)" }
    var sum = RowSum()
    for line in body { sum.add(line) }
    return (body + ["sum \(sum.value)"]).joined(separator: "\n") + "\n"
  }

  func write(to path: String) { SmallStateFile.write(text, to: path) }
}
