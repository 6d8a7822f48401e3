import PrismPacket
import PrismProtocol

/// Reads the metas of a packet one after the other: each row's own members once, and common members once for all rows.
struct RowReader {
  /// The memory for common information and merged metas that a packet has from the begin.
  static let spareBytes = 16_384
  /// Common information of one packet that comes. Rows with more of it are merged.
  private static let commonsMax = 256
  /// The memory of common information, beside its text three times.
  private static let commonBytes = 4096

  /// Common information, and what it says of rows that say nothing of it themselves.
  private struct Shared {
    let line: Range<Int>
    let common: CommonInformation
    /// In `commons`; nil: it has no place there.
    let place: Int?
    let type: Range<Int>, reportID: Range<Int>
  }

  private let block: MetaBlock
  private let cache: CommonCache
  private let lease: MemoryBudget.Lease?
  /// Of `MONITOR_TYPE`: not a part of the type.
  private var typePrefix: [UInt8] = []
  private var clockCorrection: Int64 = 0

  private var rows: [OpenedPacket.Row] = []
  private var commons: [(information: CommonInformation, rowCount: Int)] = []
  /// The places of the last ones in `commons`.
  private var places: [ObjectIdentifier: Int] = [:]
  /// The bytes behind the block's text: strings whose escapes were resolved, and merged metas.
  private var added: [UInt8] = []
  private var spareBytes = Self.spareBytes
  /// Of the row before.
  private var last: Shared?

  /// - Parameter lease: nil: the block is the store's own.
  init(_ block: MetaBlock, _ cache: CommonCache, _ lease: MemoryBudget.Lease? = nil) {
    (self.block, self.cache, self.lease) = (block, cache, lease)
    rows.reserveCapacity(block.rows.count)
  }

  /// Before the rows of a packet. - Parameter clockCorrection: milliseconds that the device's clock was behind.
  mutating func begin(_ namespace: NamespaceName, clockCorrection: Int64) {
    typePrefix = namespace.isBusiness ? Array("\(namespace)-".utf8) : []
    (self.clockCorrection, last) = (clockCorrection, nil)
  }

  func finish() -> ReportRows {
    ReportRows(bytes: added.isEmpty ? block.text : block.text + added, rows: rows, commons: commons)
  }

  /// - Parameter text: of the block.
  mutating func read(_ row: MetaBlock.Row, of text: Span<UInt8>) throws(CollectorRefusal) {
    let own = text.extracting(row.line)
    guard let line = row.common else { return try add(try fields(own), own, at: row.line) }
    let shared = try shared(line)
    let fields = try fields(own, before: shared.common.members)
    let bytes = row.line.count + shared.common.addedBytes
    guard shared.place != nil, fields.isApart, bytes <= Limits.metaBytesMax else {
      return try merge(row.line, shared.common)
    }
    try add(fields, own, at: row.line, shared)
  }

  private func fields(
    _ meta: Span<UInt8>, before common: CommonMembers? = nil
  ) throws(CollectorRefusal) -> MetaFields {
    do throws(JSONError) { return try MetaFields(meta, before: common) } catch {
      throw CollectorRefusal(422, code: .metaSyntax, "meta \(rows.count) is not a JSON object")
    }
  }

  /// A row that has a common key itself, or no members.
  private mutating func merge(_ line: Range<Int>, _ common: CommonInformation) throws(CollectorRefusal) {
    var meta: [UInt8] = []
    do throws(PacketError) { try common.append(line, of: block.text, to: &meta) } catch {
      throw CollectorRefusal(error)
    }
    let fields = try fields(meta.span)
    let begin = block.text.count + added.count
    try take(meta.count)
    added += meta
    try add(fields, meta.span, at: begin..<begin + meta.count)
  }

  private mutating func add(
    _ fields: MetaFields, _ meta: Span<UInt8>, at place: Range<Int>, _ shared: Shared? = nil
  ) throws(CollectorRefusal) {
    var (type, reportID) = (shared?.type ?? 0..<0, shared?.reportID ?? 0..<0)
    if fields.type != nil { type = try self.type(fields.type, meta, at: place.lowerBound) }
    if fields.reportID != nil { reportID = try self.place(fields.reportID, meta, at: place.lowerBound) }
    if let common = shared?.place { commons[common].rowCount += 1 }
    let common = shared?.common.fields
    let createdTime = fields.createdTime ?? common?.createdTime
    rows.append(
      OpenedPacket.Row(
        own: place, common: shared?.place, type: type, reportID: reportID,
        createdTime: createdTime.map {
          corrected(
            $0, step: fields.clockStep &+ (common?.clockStep ?? 0),
            isOfEarlierBoot: fields.isOfEarlierBoot || common?.isOfEarlierBoot ?? false)
        }))
  }

  /// The time of an earlier boot is by another clock than that of `Prism-Sent-Time`.
  private func corrected(_ time: Int64, step: Int64, isOfEarlierBoot: Bool) -> Int64 {
    let correction = isOfEarlierBoot ? 0 : clockCorrection
    return time.addingReportingOverflow(step).partialValue.addingReportingOverflow(correction).partialValue
  }

  // MARK: Common information

  private mutating func shared(_ line: Range<Int>) throws(CollectorRefusal) -> Shared {
    if let last, last.line == line { return last }
    let common: CommonInformation
    do throws(PacketError) { common = try block.common(line, cache) } catch { throw CollectorRefusal(error) }
    var place =
      places[ObjectIdentifier(common)]
      ?? commons.suffix(Self.commonsMax).lastIndex { known in
        known.information.hash == common.hash && known.information.object == common.object
      }
    if place == nil, lease == nil || commons.count < Self.commonsMax {
      try take(Self.commonBytes + 3 * common.object.count)
      place = commons.count
      commons.append((common, 0))
    }
    // It stays in `commons`, or it has the content of one there: no other object gets its address.
    if let place, commons[place].information === common { places[ObjectIdentifier(common)] = place }
    let (object, fields) = (common.object, common.fields)
    let shared = Shared(
      line: line, common: common, place: place, type: try type(fields.type, object.span, at: nil),
      reportID: try self.place(fields.reportID, object.span, at: nil))
    last = shared
    return shared
  }

  // MARK: Strings

  /// A type has no escapes that a sender makes; one that is escaped stays whole.
  private mutating func type(
    _ string: ScannedString?, _ meta: Span<UInt8>, at start: Int?
  ) throws(CollectorRefusal) -> Range<Int> {
    let whole = try place(string, meta, at: start)
    guard let string, !string.hasEscapes, !typePrefix.isEmpty, whole.count > typePrefix.count else { return whole }
    let isPrefixed = typePrefix.indices.allSatisfy { meta[string.range.lowerBound + $0] == typePrefix[$0] }
    return isPrefixed ? whole.lowerBound + typePrefix.count..<whole.upperBound : whole
  }

  /// - Parameter start: the place of `meta` in the packet's bytes; nil: it is elsewhere.
  /// - Returns: the string's place there; empty without one.
  private mutating func place(
    _ string: ScannedString?, _ meta: Span<UInt8>, at start: Int?
  ) throws(CollectorRefusal) -> Range<Int> {
    guard let string else { return 0..<0 }
    if let start, !string.hasEscapes { return start + string.range.lowerBound..<start + string.range.upperBound }
    try take(string.range.count)
    let begin = block.text.count + added.count
    string.append(from: meta, to: &added)
    return begin..<block.text.count + added.count
  }

  // MARK: Memory

  /// - Throws: 413, 503.
  private mutating func take(_ bytes: Int) throws(CollectorRefusal) {
    if bytes > spareBytes, let lease {
      // The array of merged metas grows in steps, too.
      let more = max(bytes, added.count, Self.spareBytes)
      guard lease.mayGrow(by: more) else { throw PacketOpening.rowsTooLarge(lease.bytesTaken + more, lease) }
      guard lease.grow(by: more) else { throw .noMemory }
      spareBytes += more
    }
    spareBytes -= bytes
  }
}
