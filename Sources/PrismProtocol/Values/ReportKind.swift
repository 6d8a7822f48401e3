/// Whether a row, or a packet of rows, is of metas or of payloads. The two are batched and settled apart.
public enum ReportKind: String, Sendable, CaseIterable, Hashable {
  case meta, payload
}
