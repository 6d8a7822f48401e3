/// Reads the whole records of a database that SQLite can't read, or not completely.
///
/// The table of a page is found in two ways: down the tree from the table's first page, and up the file's pointer map. One of
/// them is enough if the other is damaged. If they contradict each other the page is ignored, so that no row comes into
/// another table than its own.
public final class DamagedDatabase {
  static let recordBytesMax = 64 * 1024 * 1024
  private static let depthMax = 20

  private let pages: DatabasePages
  private let knownRoots: [String: Int]?
  /// A table's name by its first page.
  private var roots: [Int: String] = [:]
  private var hasOwnSchema = false
  /// By page number: the first page of the table it belongs to; 0: unknown, or free.
  private var owners: [Int32] = []
  private var pointerMaps: [Int: [UInt8]] = [:]

  /// nil if the file can't be opened.
  /// - Parameter required: tables that every database of this kind has.
  /// - Parameter noted: each table's first page by its name, as noted beside the database; nil: there is no such note.
  public init?(path: String, required: Set<String>, roots noted: [String: Int]?) {
    guard let pages = DatabasePages(path: path) else { return nil }
    (self.pages, knownRoots) = (pages, noted)
    readSchema()
    hasOwnSchema = Set(roots.values).isSuperset(of: required)
    addKnownRoots()
    findOwners()
  }

  /// The pages of the file, those in its log included.
  public var pageCount: Int { pages.count }
  /// A page can only be read as an earlier commit left it, because the log is damaged: counts may be too low.
  public var hasOutdatedPage: Bool { pages.hasOutdatedPage }
  /// The tables that are known by name, in no order.
  public var tables: some Collection<String> { roots.values }

  /// Whether it is a database of this kind: it has the required tables, or its tables' first pages are known and a record
  /// of them can be read.
  public var isOfThisKind: Bool {
    if hasOwnSchema { return true }
    guard knownRoots != nil else { return false }
    guard let first = pages.page(1) else { return true }
    return BTreePage.headerOffset(first) > 0
      || owners.indices.contains { table(of: $0) != nil && !records(on: $0).isEmpty }
  }

  /// The name of the table that a page of rows belongs to.
  public func table(of page: Int) -> String? { owners.indices.contains(page) ? roots[Int(owners[page])] : nil }

  /// Every record of `table` that can be read.
  public func forEachRecord<Failure>(
    of table: String, _ body: (SalvagedRecord) throws(Failure) -> Void
  ) throws(Failure) {
    for page in owners.indices where self.table(of: page) == table {
      for record in records(on: page) { try body(record) }
    }
  }

  /// In the order in which they stand on the page.
  public func records(on number: Int) -> [SalvagedRecord] {
    guard let page = pages.page(number) else { return [] }
    // Sound records share no overflow page. Damaged ones may all name the same, in a circle.
    var readsLeft = 2 * pages.count
    switch BTreePage.kind(page) {
    case BTreePage.leafTable:
      return TableLeaf.cells(page).compactMap { cell in
        record(on: page, start: cell.start, bytes: cell.bytes, localMax: page.count - 35, &readsLeft).flatMap {
          SalvagedRecord(id: cell.id, $0)
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
          SalvagedRecord(id: 0, $0)
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

  /// Adds tables that the schema doesn't name any more, unless their first page begins another table.
  private func addKnownRoots() {
    let found = Set(roots.values)
    for (name, root) in knownRoots ?? [:]
    where !found.contains(name) && roots[root] == nil && root <= pages.count {
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

  /// Pages in one page of the pointer map, and that page itself.
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

  // MARK: Single rows

  /// Calls `body` with those rows of a table that are found by their ids, in no order.
  public func forEachRow<Failure>(
    of table: String, _ ids: Set<Int64>, _ body: (SalvagedRecord) throws(Failure) -> Void
  ) throws(Failure) {
    guard let root = roots.first(where: { $0.value == table })?.key else { return }
    var missing = ids
    for id in ids.sorted() where missing.contains(id) {
      guard let page = leaf(of: id, under: root) else { continue }
      try take(&missing, on: page, body)
    }
    // The way down to them is damaged: they are looked for on every page.
    for page in owners.indices where !missing.isEmpty && owners[page] == root { try take(&missing, on: page, body) }
  }

  private func take<Failure>(
    _ missing: inout Set<Int64>, on page: Int, _ body: (SalvagedRecord) throws(Failure) -> Void
  ) throws(Failure) {
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
}
