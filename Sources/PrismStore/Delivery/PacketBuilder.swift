import PrismProtocol
import PrismSQLite

/// Takes rows in their order until the packet is full.
struct PacketBuilder {
  let itemsMax: Int
  let bytesMax: Int
  let metaBytesMax: Int

  private(set) var members = IDRuns()
  private(set) var metas: [UInt8] = []
  private(set) var payloads: [[UInt8]] = []
  private(set) var bytes = 0
  private(set) var hasClientIDs = false
  /// The members of the last line of common information in `metas`.
  private var common: [UInt8] = []
  private static let (commonHead, commonTail) = (Array(#"{"$common":{"#.utf8), Array("}}".utf8))

  /// - Parameter metaBytesExpected: grown by doubling, the metas would be copied once more than they are long.
  init(itemsMax: Int, bytesMax: Int, metaBytesMax: Int, metaBytesExpected: Int) {
    (self.itemsMax, self.bytesMax, self.metaBytesMax) = (itemsMax, bytesMax, metaBytesMax)
    metas.reserveCapacity(min(bytesMax, metaBytesMax, metaBytesExpected))
  }

  /// Takes every row: for a packet whose rows were settled when it was claimed.
  static func unlimited(metaBytesExpected: Int) -> Self {
    Self(itemsMax: .max, bytesMax: .max, metaBytesMax: .max, metaBytesExpected: metaBytesExpected)
  }

  var isFull: Bool { members.count >= itemsMax }

  /// false: the packet is closed, the row is not in it. The first row is always taken.
  /// - Parameter clock: further members that it has in common with others.
  mutating func add(_ row: StoredRow, _ rendering: RowRendering, clock: [UInt8]) throws(SQLiteError) -> Bool {
    let (start, commonBefore) = (metas.count, common)
    guard members.isEmpty || (!isFull && Int(row.size) <= bytesMax - bytes) else { return false }
    let context = row.flags.contains(.selfContained) ? [] : rendering.context
    share(clock.isEmpty ? context : context + (context.isEmpty ? [] : [UInt8(ascii: ",")]) + clock)
    if !metas.isEmpty { metas.append(UInt8(ascii: "\n")) }
    rendering.append(row, to: &metas)
    if !members.isEmpty && metas.count > metaBytesMax {
      metas.removeLast(metas.count - start)
      common = commonBefore
      return false
    }
    if let payload = row.payload { payloads.append([UInt8](payload)) }
    try members.append(read: row.id)
    bytes += Int(row.size)
    hasClientIDs = hasClientIDs || row.flags.contains(.clientID)
    return true
  }

  /// Members that the rows from here on have in common are a line of their own (docs/packet.md, "Common information").
  private mutating func share(_ members: [UInt8]) {
    guard members != common else { return }
    if !metas.isEmpty { metas.append(UInt8(ascii: "\n")) }
    metas += Self.commonHead + members + Self.commonTail
    common = members
  }
}

/// The members and settings that turn a row into the lines that leave.
///
/// A class: as a value, its arrays would be counted up and down for every row.
final class RowRendering: Sendable {
  /// The members of the row's context, which are not in its own line.
  let context: [UInt8]
  private let splicing: MetaSplicing
  private let wholeSplicing: MetaSplicing

  /// - Parameter splicing: makes what renders rows, with these members in each.
  init(context: [UInt8], splicing: (_ context: [UInt8]) -> MetaSplicing) {
    (self.context, self.splicing, wholeSplicing) = (context, splicing([]), splicing(context))
  }

  /// The row's own line.
  func append(_ row: StoredRow, to metas: inout [UInt8]) { append(row, splicing, to: &metas) }

  /// The row with its context: a report by itself.
  func whole(_ row: StoredRow) -> [UInt8] {
    var meta: [UInt8] = []
    append(row, wholeSplicing, to: &meta)
    return meta
  }

  private func append(_ row: StoredRow, _ splicing: MetaSplicing, to metas: inout [UInt8]) {
    splicing.append(
      row.reportID.map { .given($0) } ?? .made(RowID(value: row.id)),
      createdTime: row.flags.contains(.ownCreateTime) ? nil : row.createdTime,
      isSelfContained: row.flags.contains(.selfContained), body: row.body, to: &metas)
  }
}
