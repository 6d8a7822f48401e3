import PrismBase
import PrismProtocol
import PrismStore

/// Numbered reports of one namespace: report `n` differs from every other, and its bytes from damaged ones.
enum Reports {
  static let namespace = NamespaceName("faults")!
  private static let context = CommonContext(members: Array(#""APP_NAME":"faults","APP_UID":"7""#.utf8))
  private static let type = ReportType("net")!

  static func body(_ number: Int) -> String {
    let filler = String(repeating: String(number % 10), count: 40 + number * 37 % 400)
    return #""number":\#(number),"filler":"\#(filler)""#
  }

  static func batch(
    _ numbers: Range<Int>, in namespace: NamespaceName = namespace, by userID: UInt32 = 1000, reportID: String? = nil,
    quota: StoreQuota = StoreQuota(bytesMax: 1 << 40, evictsOldest: false), priority: Priority = .rest
  ) -> ReportBatch {
    var batch = ReportBatch(
      namespace: namespace, userID: userID, context: context, quota: quota)
    batch.types = [.init(type: type, priority: priority, isRealtime: false)]
    for number in numbers {
      let start = batch.arena.count
      batch.arena += body(number).utf8
      var row = ReportBatch.Row(
        type: 0, createdTime: 1_700_000_000_000, body: start..<batch.arena.count, metaBytes: 600)
      if let reportID {
        row.clientReportID = batch.arena.count..<batch.arena.count + reportID.utf8.count
        batch.arena += reportID.utf8
      }
      batch.rows.append(row)
    }
    return batch
  }

  /// The number in a meta that left; nil when it is not, byte for byte, what was handed in.
  static func number(in meta: Substring) -> Int? {
    guard let value = try? JSONValue(parsing: Array(meta.utf8)), let number = value["number"]?.int else { return nil }
    // Behind the daemon's own members, and before the common information.
    let text = "," + body(number)
    return meta.hasSuffix(text + "}") || meta.contains(text + ",") ? number : nil
  }

  /// A claim of up to `itemsMax` waiting rows of any type.
  static func claim(_ itemsMax: Int = 1000, unixMilliseconds: Int64 = 1_700_000_000_000) -> Claim {
    var random = SystemRandomNumberGenerator()
    return Claim(
      namespace: namespace, kind: .meta, types: .all, itemsMax: itemsMax, bytesMax: 1 << 24, metaBytesMax: 1 << 24,
      packetID: PacketID(unixMilliseconds: unixMilliseconds, using: &random), unixMilliseconds: unixMilliseconds)
  }

  static let receipt = Disposition.Receipt(unixMilliseconds: 1_700_000_000_000, attempts: 1, wasDuplicate: false)
}
