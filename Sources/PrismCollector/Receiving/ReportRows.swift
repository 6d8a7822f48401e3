import PrismPacket

/// The metas of reports, read one by one. Rows are places in one buffer.
struct ReportRows: Sendable {
  /// The lines, followed by strings whose escapes were resolved, and by metas that had to be merged.
  let bytes: [UInt8]
  let rows: [OpenedPacket.Row]
  /// Common information, each once, and how many rows have it.
  let commons: [(information: CommonInformation, rowCount: Int)]

  /// The whole meta of a row: its own members, and then the common ones.
  func meta(_ row: OpenedPacket.Row) -> [UInt8] {
    guard let common = row.common else { return Array(bytes[row.own]) }
    let object = commons[common].information.object
    var meta: [UInt8] = []
    meta.reserveCapacity(row.own.count + object.count)
    meta += bytes[row.own.dropLast()]
    meta.append(UInt8(ascii: ","))
    meta += object.dropFirst()
    return meta
  }
}
