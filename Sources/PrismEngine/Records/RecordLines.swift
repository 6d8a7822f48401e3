import PrismProtocol

/// The tables of a packet's operations, read from its plaintext.
enum RecordLines {
  /// Whether an operation on one of `tables` is among `lines`, which are joined with line feeds.
  static func contain(_ tables: TypeSet, lines: [UInt8]) -> Bool {
    if tables.isEmpty { return false }
    return lines.split(separator: UInt8(ascii: "\n")).contains { line in
      RecordOperation(line: Array(line)).flatMap { ReportType($0.table.text) }.map(tables.contains) ?? false
    }
  }
}
