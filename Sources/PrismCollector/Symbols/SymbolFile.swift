import Glibc
import PrismBase

/// The facts of an ELF file that decide whether it can name places in a program: its build id, names, lines. Few bounded parts
/// of it are read, and no number in it is believed.
struct SymbolFile {
  /// Why a file names nothing.
  enum Fault: String, Error {
    case noELF = "it is no ELF file of a little-endian machine"
    case damaged = "its sections lie outside of it"
    case noBuildID = "it has no build id; link with --build-id"
    case stripped = "it is stripped: neither names nor debug information are left; add the file from before strip"
  }

  private struct Section {
    let name: UInt64, type: UInt64, offset: UInt64, size: UInt64
  }

  private static let sectionsMax: UInt64 = 65_536
  private static let magic: [UInt8] = [127] + "ELF".utf8
  private static let partBytesMax: UInt64 = 8 * 1_048_576
  /// ELF's numbers of types of sections.
  private static let (symbolTable, note, noBits): (UInt64, UInt64, UInt64) = (2, 7, 8)

  /// In lower-case hexadecimal digits.
  private(set) var buildID = ""
  /// It has lines and inlined functions, and not names alone.
  private(set) var hasLines = false

  private let descriptor: Int32
  private let size: UInt64

  /// - Parameter descriptor: of a regular file; it stays open.
  init(_ descriptor: Int32) throws(Fault) {
    var facts = stat()
    guard fstat(descriptor, &facts) == 0, facts.st_mode & S_IFMT == S_IFREG else { throw .noELF }
    (self.descriptor, size) = (descriptor, UInt64(facts.st_size))
    let sections = try sections()
    guard let id = sections.lazy.filter({ $0.type == Self.note }).compactMap(buildID(in:)).first else {
      throw .noBuildID
    }
    buildID = id
    let hasNames = sections.contains { $0.type == Self.symbolTable && $0.size > 0 }
    guard hasNames || hasLines else { throw .stripped }
  }

  /// - Returns: nil: it is not within the file, or too large.
  private func part(_ offset: UInt64, _ count: UInt64) -> [UInt8]? {
    guard count <= Self.partBytesMax, offset <= size, count <= size - offset else { return nil }
    let bytes = [UInt8](unsafeUninitializedCapacity: Int(count)) { buffer, filled in
      filled = max(0, pread(descriptor, buffer.baseAddress, Int(count), off_t(offset)))
    }
    return bytes.count == Int(count) ? bytes : nil
  }

  private static func number(_ bytes: [UInt8], _ place: Int, _ width: Int) -> UInt64 {
    bytes[place..<place + width].reversed().reduce(0) { $0 << 8 | UInt64($1) }
  }

  private mutating func sections() throws(Fault) -> [Section] {
    guard let head = part(0, 64), head.starts(with: Self.magic), (1...2).contains(head[4]), head[5] == 1
    else { throw .noELF }
    let isWide = head[4] == 2
    let (width, entry) = isWide ? (8, 64) : (4, 40)
    let table = Self.number(head, isWide ? 40 : 32, width)
    let counts = isWide ? 58 : 46
    guard Self.number(head, counts, 2) == entry, let first = part(table, UInt64(entry)) else { throw .damaged }
    let section = { (bytes: [UInt8], start: Int) in
      Section(
        name: Self.number(bytes, start, 4), type: Self.number(bytes, start + 4, 4),
        offset: Self.number(bytes, start + 8 + 2 * width, width), size: Self.number(bytes, start + 8 + 3 * width, width)
      )
    }
    // A count that has no room in the head is in the first section.
    let count = Self.number(head, counts + 2, 2) == 0 ? section(first, 0).size : Self.number(head, counts + 2, 2)
    guard count <= Self.sectionsMax, let bytes = part(table, count * UInt64(entry)) else { throw .damaged }
    let sections = (0..<Int(count)).map { section(bytes, $0 * entry) }
    let names = Int(Self.number(head, counts + 4, 2))
    if sections.indices.contains(names), let texts = part(sections[names].offset, sections[names].size) {
      hasLines = sections.contains { section in
        section.type != Self.noBits && section.size > 0 && section.name < UInt64(texts.count)
          && [".debug_info", ".zdebug_info"].contains { texts[Int(section.name)...].starts(with: Array($0.utf8) + [0]) }
      }
    }
    return sections
  }

  /// Of the note of type 3 and the name `GNU`.
  private func buildID(in section: Section) -> String? {
    guard let bytes = part(section.offset, section.size) else { return nil }
    var place = 0
    while place + 12 <= bytes.count {
      let (name, content) = (Int(Self.number(bytes, place, 4)), Int(Self.number(bytes, place + 4, 4)))
      let start = place + 12 + (name + 3) & ~3
      guard start + content <= bytes.count else { return nil }
      if Self.number(bytes, place + 8, 4) == 3, name == 4, bytes[(place + 12)...].starts(with: "GNU\0".utf8) {
        let id = Hex.encode(Array(bytes[start..<start + content]))
        return SymbolFolder.isBuildID(id) ? id : nil
      }
      place = start + (content + 3) & ~3
    }
    return nil
  }
}
