/// Reads whatever is whole in a database of the store's that SQLite can't read, or not all of.
///
/// A page tells which table it belongs to in two ways: the tree above it leads to it, and the file's pointer map leads
/// from it up to the table's first page. One of them is enough where the other is damaged; where they contradict each
/// other the page is left alone, so that no row ever comes into another table than its own.
final class DamagedDatabase {
  static let recordBytesMax = 64 * 1024 * 1024
  fileprivate static let depthMax = 20

  let pages: DatabasePages
  /// What was written beside it; nil: nothing that can be read.
  let contents: TableOfContents?
  /// A table's name by its first page.
  fileprivate var roots: [Int: String] = [:]
  private var hasOwnSchema = false
  /// By page number: the first page of the table it belongs to; 0: unknown, or none.
  fileprivate var owners: [Int32] = []
  private var pointerMaps: [Int: [UInt8]] = [:]

  /// nil: the file can't be opened.
  init?(path: String) {
    guard let pages = DatabasePages(path: path) else { return nil }
    self.pages = pages
    contents = TableOfContents(path: path + TableOfContents.suffix)
    readSchema()
    hasOwnSchema = Set(roots.values).isSuperset(of: ["facts", "namespaces", "ledger"])
    addFromContents()
    findOwners()
  }

  /// Whether it was made by the store: it has the tables that every version has, or is what is left of a file that stood
  /// beside its contents.
  var isOurs: Bool {
    if hasOwnSchema { return true }
    guard contents != nil else { return false }
    guard let first = pages.page(1) else { return true }
    return BTreePage.headerOffset(first) > 0
      || owners.indices.contains { table(of: $0) != nil && !records(on: $0).isEmpty }
  }

  /// The name of the table that a page of rows belongs to.
  func table(of page: Int) -> String? { owners.indices.contains(page) ? roots[Int(owners[page])] : nil }

  /// Every record of `table` that can be read.
  func forEachRecord(of table: String, _ body: (SQLiteRecord) throws(SQLiteError) -> Void) throws(SQLiteError) {
    for page in owners.indices where self.table(of: page) == table {
      for record in records(on: page) { try body(record) }
    }
  }

  /// In the order in which they stand on the page.
  func records(on number: Int) -> [SQLiteRecord] {
    guard let page = pages.page(number) else { return [] }
    // Sound records share no overflow page. Damaged ones may all name the same, in a circle.
    var readsLeft = 2 * pages.count
    switch BTreePage.kind(page) {
    case BTreePage.leafTable:
      return TableLeaf.cells(page).compactMap { cell in
        record(on: page, start: cell.start, bytes: cell.bytes, localMax: page.count - 35, &readsLeft).flatMap {
          SQLiteRecord(id: cell.id, $0)
        }
      }
    case BTreePage.leafIndex, BTreePage.interiorIndex:
      let skipped = BTreePage.kind(page) == BTreePage.interiorIndex ? 4 : 0
      return BTreePage.cellOffsets(page).compactMap { offset in
        guard let bytes = BTreePage.variableInt(page, offset + skipped),
          (1...Self.recordBytesMax).contains(Int(bytes.value))
        else { return nil }
        let localMax = (page.count - 12) * 64 / 255 - 23
        return record(on: page, start: bytes.end, bytes: Int(bytes.value), localMax: localMax, &readsLeft).flatMap {
          SQLiteRecord(id: 0, $0)
        }
      }
    default: return []
    }
  }

  /// A record's bytes, those on overflow pages among them; nil where one of those is missing.
  /// - Parameter readsLeft: of overflow pages; lowered by those that are read.
  private func record(
    on page: [UInt8], start: Int, bytes: Int, localMax: Int, _ readsLeft: inout Int
  ) -> [UInt8]? {
    var local = bytes
    if bytes > localMax {
      let localMin = (page.count - 12) * 32 / 255 - 23
      local = localMin + (bytes - localMin) % (page.count - 4)
      if local > localMax { local = localMin }
    }
    guard start + local + (local < bytes ? 4 : 0) <= page.count else { return nil }
    var record = Array(page[start..<start + local])
    var next = local < bytes ? page.bigEndian32(start + local) : 0
    while record.count < bytes {
      guard readsLeft > 0, let overflow = pages.page(next) else { return nil }
      readsLeft -= 1
      record += overflow[4..<min(overflow.count, 4 + bytes - record.count)]
      next = overflow.bigEndian32(0)
    }
    return record
  }

  // MARK: Which page belongs to which table

  private func readSchema() {
    var (open, seen) = ([1], Set<Int>())
    while let number = open.popLast() {
      guard seen.insert(number).inserted, let page = pages.page(number) else { continue }
      open += BTreePage.children(page)
      for record in records(on: number) {
        guard record.text(0) == "table", let name = record.text(1), let root = record.int(3),
          (2...Int64(max(2, pages.count))).contains(root)
        else { continue }
        roots[Int(root)] = name
      }
    }
  }

  /// Tables that the schema doesn't name (any more). A page that begins another table is left to that one.
  private func addFromContents() {
    let known = Set(roots.values)
    for (name, root) in contents?.roots ?? [:] where !known.contains(name) && roots[root] == nil && root <= pages.count
    {
      roots[root] = name
    }
  }

  private func findOwners() {
    owners = [Int32](repeating: 0, count: pages.count + 1)
    for root in roots.keys { descend(from: root) }
    for page in 1..<max(2, owners.count) {
      guard let root = climb(from: page) else { continue }
      if owners[page] == 0 {
        owners[page] = Int32(root)
      } else if owners[page] != root {
        owners[page] = 0
      }
    }
  }

  private func descend(from root: Int) {
    var open = [root]
    while let number = open.popLast() {
      guard owners.indices.contains(number), owners[number] == 0 else { continue }
      owners[number] = Int32(root)
      guard let page = pages.page(number) else { continue }
      open += BTreePage.children(page)
    }
  }

  /// By the pointer map (https://www.sqlite.org/fileformat.html#pointer_map_or_ptrmap_pages). nil: it doesn't say.
  private func climb(from page: Int) -> Int? {
    var number = page
    for _ in 0..<Self.depthMax {
      guard let (kind, parent) = pointer(of: number) else { return nil }
      switch kind {
      case 1: return roots[number] == nil ? nil : number
      case 5: number = parent
      default: return nil
      }
    }
    return nil
  }

  /// Pages that one page of the pointer map tells of, itself included.
  private static let mappedPages = DatabasePages.pageBytes / 5 + 1
  /// SQLite keeps the page at 1 GiB for its locks.
  private static let lockPage = 1 << 30 / DatabasePages.pageBytes + 1

  private func pointer(of page: Int) -> (kind: UInt8, parent: Int)? {
    guard page > 2, page <= pages.count else { return nil }
    var map = (page - 2) / Self.mappedPages * Self.mappedPages + 2
    if map == Self.lockPage { map += 1 }
    if pointerMaps[map] == nil { pointerMaps[map] = pages.page(map) ?? [] }
    let offset = 5 * (page - map - 1)
    guard let bytes = pointerMaps[map], offset >= 0, offset + 5 <= bytes.count else { return nil }
    return (bytes[offset], bytes.bigEndian32(offset + 1))
  }
}

// MARK: Single rows
extension DamagedDatabase {
  /// Calls `body` with those rows of a table that are found by their ids, in no order.
  func forEachRow(
    of table: String, _ ids: Set<Int64>, _ body: (SQLiteRecord) throws(SQLiteError) -> Void
  ) throws(SQLiteError) {
    guard let root = roots.first(where: { $0.value == table })?.key else { return }
    var missing = ids
    for id in ids.sorted() where missing.contains(id) {
      guard let page = leaf(of: id, under: root) else { continue }
      try take(&missing, on: page, body)
    }
    // The way down to them is damaged: they are looked for on every page.
    for page in owners.indices where !missing.isEmpty && owners[page] == root { try take(&missing, on: page, body) }
  }

  private func take(
    _ missing: inout Set<Int64>, on page: Int, _ body: (SQLiteRecord) throws(SQLiteError) -> Void
  ) throws(SQLiteError) {
    for record in records(on: page) where missing.remove(record.id) != nil { try body(record) }
  }

  private func leaf(of id: Int64, under root: Int) -> Int? {
    var number = root
    for _ in 0..<Self.depthMax {
      guard let page = pages.page(number) else { return nil }
      switch BTreePage.kind(page) {
      case BTreePage.leafTable: return owners.indices.contains(number) && owners[number] == root ? number : nil
      case BTreePage.interiorTable:
        // A cell is a child and the largest key below it.
        let next = BTreePage.cellOffsets(page).first { offset in
          BTreePage.variableInt(page, offset + 4).map { $0.value >= id } ?? false
        }
        number = page.bigEndian32(next ?? BTreePage.headerOffset(page) + 8)
      default: return nil
      }
    }
    return nil
  }

  /// Above every namespace's number that a table stands for.
  var namespaceEnd: Int {
    1 + (roots.values.compactMap { "mp".contains($0.prefix(1)) ? Int($0.dropFirst()) : nil }.max() ?? 0)
  }
}

extension DamagedDatabase {
  /// The rows of its packets in flight, as far as those can be read.
  var claimed: [QueueID: [IDRuns]] {
    var claimed: [QueueID: [IDRuns]] = [:]
    // What the body throws is its own, and it throws nothing.
    try? forEachRecord(of: "packets") { record in
      if let packet = PacketRecord(record) { claimed[packet.queue, default: []].append(packet.members) }
    }
    return claimed
  }
}
