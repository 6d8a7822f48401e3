import PrismBase
import PrismProtocol
import PrismSQLite

/// A second copy of the data that is needed to read the database, in a small file beside it. It has the first pages of
/// the tables, and the names behind the numbers in rows. Without it one damaged page of the schema would make every row
/// anonymous.
///
/// Written again with each new name; only used if the database's own copy can't be read.
struct TableOfContents: Equatable, Sendable {
  static let suffix = ".toc"
  /// With 1,000 namespaces some 100 KiB.
  private static let bytesMax = 4 * 1024 * 1024

  var epoch: String
  /// A table's first page by its name.
  var roots: [String: Int] = [:]
  var namespaces: [Int: NamespaceName] = [:]
  var types: [Int64: ReportType] = [:]

  init(_ connection: SQLiteConnection, _ names: Names, epoch: Epoch) throws(SQLiteError) {
    (self.epoch, namespaces, types) = (epoch.text, names.namespaces, names.types)
    var roots: [String: Int] = [:]
    let select = try connection.prepare("SELECT \(RootColumn.list) FROM sqlite_schema WHERE type = 'table'")
    try select.forEachRow(of: RootColumn.self) { roots[$0.text(.name)] = $0.int(.rootpage) }
    self.roots = roots
  }

  private enum RootColumn: String, SQLiteColumn { case name, rootpage }

  /// nil if there is no such file, or if it is not as it was written.
  init?(path: String) {
    guard let text = SideFile.text(path, bytesMax: Self.bytesMax) else { return nil }
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
    var sum = RecordChecksum()
    for line in body { sum.add(line) }
    return (body + ["sum \(sum.value)"]).joined(separator: "\n") + "\n"
  }

  func write(to path: String) { SideFile.write(text, to: path) }
}
