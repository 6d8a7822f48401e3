/// The columns of a table or a query: an enumeration. Its cases have the order in which SQL lists the columns. A case `lastUse`
/// is the column `last_use`; for another name, or an expression, it has a raw value.
///
/// ```swift
/// private enum Column: String, SQLiteColumn { case namespace, key, lastUse }
/// let select = try connection.prepare("SELECT \(Column.list) FROM notes WHERE namespace = :namespace")
/// select.bind(":namespace", 7)
/// try select.forEachRow(of: Column.self) { row in print(row.text(.key), row.int64(.lastUse)) }
/// ```
///
/// A case's index is known without a look-up, so that a row costs no more than with numbers.
public protocol SQLiteColumn: RawRepresentable<String>, CaseIterable, Sendable {}

extension SQLiteColumn {
  /// Its place in the list, from 0.
  @inlinable public var index: Int32 {
    // Cases without values are numbered in their order; the only case of an enumeration has no bytes.
    MemoryLayout<Self>.size == 0 ? 0 : Int32(unsafeBitCast(self, to: UInt8.self))
  }

  /// Its name in SQL, or its expression.
  public var sqlName: String {
    let name = rawValue.utf8
    let isCamel = name.contains(where: Self.isUpper) && name.allSatisfy { Self.isUpper($0 & ~Self.caseBit) }
    guard isCamel else { return rawValue }
    var (result, wasUpper): ([UInt8], Bool) = ([], true)
    for letter in name {
      let isUpper = Self.isUpper(letter)
      if isUpper, !wasUpper { result.append(UInt8(ascii: "_")) }
      result.append(letter | Self.caseBit)
      wasUpper = isUpper
    }
    return String(decoding: result, as: UTF8.self)
  }

  /// The bit that tells a small letter from a capital one.
  private static var caseBit: UInt8 { UInt8(ascii: "a") ^ UInt8(ascii: "A") }
  private static func isUpper(_ letter: UInt8) -> Bool { (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(letter) }

  /// All columns, for SELECT and INSERT.
  public static var list: String { list(allCases.map { $0 }) }

  /// All columns but the last ones, from `end` on.
  public static func list(before end: Self) -> String { list(allCases.prefix(Int(end.index)).map { $0 }) }

  private static func list(_ columns: [Self]) -> String {
    for (place, column) in columns.enumerated() {
      precondition(column.index == place, "\(Self.self) must be an enumeration of up to 256 cases without values")
    }
    return columns.map(\.sqlName).joined(separator: ", ")
  }
}
