/// Rows in the binary form of COPY (PostgreSQL's manual, "Binary Format").
public struct CopyRows {
  /// Seconds from 1970 to 2000, where PostgreSQL counts from.
  public static let epochSeconds: Int64 = 946_684_800

  private static let signature = Array("PGCOPY\n".utf8) + [0xFF] + Array("\r\n\0".utf8)

  @usableFromInline var bytes: [UInt8] = signature + [UInt8](repeating: 0, count: 8)

  /// Without rows.
  public init() {}

  mutating func removeAll() { bytes.removeAll(keepingCapacity: true) }

  func withBytes<Result>(_ body: (UnsafePointer<CChar>, Int) -> Result) -> Result {
    bytes.withUnsafeBytes { body($0.baseAddress!.assumingMemoryBound(to: CChar.self), $0.count) }
  }

  /// Begins a row; its columns follow.
  public mutating func begin(columns: Int16) { append(columns) }

  /// Ends a row.
  public mutating func end() { append(Int16(-1)) }

  /// NULL.
  public mutating func addNull() { append(Int32(-1)) }

  /// A `bigint`; nil is NULL.
  public mutating func add(_ value: Int64?) {
    guard let value else { return addNull() }
    append(Int32(8))
    append(value)
  }

  /// A `date`, in days since 2000.
  public mutating func add(day: Int32) {
    append(Int32(4))
    append(day)
  }

  /// A text or a `bytea`.
  @inlinable public mutating func add(_ value: some Collection<UInt8>) {
    append(Int32(value.count))
    bytes.append(contentsOf: value)
  }

  @inlinable mutating func append(_ value: some FixedWidthInteger) {
    withUnsafeBytes(of: value.bigEndian) { bytes.append(contentsOf: $0) }
  }
}
