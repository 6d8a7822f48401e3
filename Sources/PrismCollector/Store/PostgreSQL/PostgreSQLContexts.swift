import PrismPacket

/// The table `contexts`: what rows of a day have in common. A replica writes each once a day, within the transaction of its first
/// rows.
struct PostgreSQLContexts {
  /// Common information below this size is left in its rows, as for `CommonEnds`.
  private static let bytesMin = CommonEnds.bytesMin
  private static let notedMax = 65_536
  private static let dayMicroseconds: Int64 = 86_400_000_000

  /// In the order of their hashes, so that two replicas never wait for each other's rows.
  private static let insert = """
    INSERT INTO contexts (day, hash, common)
    SELECT (now() AT TIME ZONE 'UTC')::date, c.hash, c.common FROM unnest($1::bigint[], $2::text[]) c (hash, common)
    ORDER BY c.hash ON CONFLICT DO NOTHING
    """

  /// The contexts of a packet's rows.
  struct References {
    /// The hash for common information, by its place in the packet; nil: its rows have it themselves.
    var commons: [Int64?] = []
    /// For rows that came whole.
    var ends: ArraySlice<CommonEnds.Run> = []

    /// The hash for a row, and how many bytes of its own text it replaces.
    mutating func next(_ row: OpenedPacket.Row, _ number: Int) -> (hash: Int64?, replacedBytes: Int) {
      // The brace is the end of what follows, too.
      if let common = row.common { return (commons[common], 1) }
      if let run = ends.first, number >= run.rows.upperBound { ends.removeFirst() }
      guard let run = ends.first, run.rows.contains(number) else { return (nil, 0) }
      return (run.hash, run.text.count)
    }
  }

  /// Those of `day`, in days since 2000.
  private var noted: Set<Int64> = []
  private var day: Int64 = .min
  private var found: [Int64: ArraySlice<UInt8>] = [:]

  /// Begins a transaction. - Parameter received: its time, microseconds since 2000.
  mutating func begin(received: Int64) {
    found = [:]
    if received / Self.dayMicroseconds != day || noted.count > Self.notedMax { noted = [] }
    day = received / Self.dayMicroseconds
  }

  /// A context is made for two rows and more.
  mutating func references(of packet: OpenedPacket) -> References {
    var references = References()
    for (common, rowCount) in packet.commons {
      let isKnown = noted.contains(common.hash) || found[common.hash] != nil
      let isReferred = common.object.count >= Self.bytesMin && (isKnown || rowCount > 1)
      references.commons.append(isReferred ? common.hash : nil)
      guard isReferred, !isKnown else { continue }
      found[common.hash] = [UInt8(ascii: ",")] + common.object.dropFirst()
    }
    references.ends = CommonEnds(packet).runs[...]
    for run in references.ends where !noted.contains(run.hash) { found[run.hash] = run.text }
    return references
  }

  /// Writes those that are new today.
  mutating func write(_ connection: PostgreSQLConnection, by deadline: Deadline) throws(PostgreSQLError) {
    guard !found.isEmpty else { return }
    _ = try connection.query(
      Self.insert,
      [
        PostgreSQLArray.text(found.keys.map { String($0) }),
        PostgreSQLArray.text(found.values.map { String(decoding: $0, as: UTF8.self) }),
      ], by: deadline)
    noted.formUnion(found.keys)
    found = [:]
  }
}
