/// The form of a column's values. The raw values are those of docs/packet.md, "Columns".
enum ColumnKind: UInt8, CaseIterable {
  /// One value for all rows.
  case constant = 0
  /// Values as they are, each ended by a line feed.
  case values = 1
  /// Strings without their quotes, each ended by a line feed.
  case strings = 2
  /// Few different values: each once, and the number of each row's value.
  case words = 3
  /// A bit for each row.
  case booleans = 4
  /// Strings of lower-case hexadecimal digits, as many in each row: the bytes.
  case hexadecimal = 5
  /// The same where some strings are empty: a bit for each row first, which is 1 with a string.
  case someHexadecimal = 6
  /// Strings that are one prefix and a number: of one number of digits, or decimal without leading zeros.
  case ids = 7
  /// Numbers without an exponent, as integers.
  case numbers = 8
}
