import PrismConfig
import PrismProtocol

/// An entry of a monitor list, prepared for its reports.
struct ListedType: Sendable {
  let rowType: ReportBatch.RowType
  /// The name as a request has it; of a pattern, bytes that no request has.
  let bytes: [UInt8]
  /// Bytes of its `MONITOR_TYPE`.
  let monitorTypeBytes: Int
  /// nil if it has no filter.
  let filter: TypeFilter?
  let uploadsPayloads: Bool

  init(_ entry: MonitoredType, in namespace: NamespaceName, _ tools: FilterTools) {
    rowType = ReportBatch.RowType(entry.type, entry)
    bytes = entry.type.isPattern ? [0xFF] : Array(entry.type.text.utf8)
    monitorTypeBytes = MetaSplicing.monitorType(entry.type, in: namespace).utf8.count
    uploadsPayloads = entry.isUploadPayload
    filter = TypeFilter(entry.filters, of: entry.type.text, in: namespace, tools)
  }
}
