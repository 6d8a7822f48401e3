/// Whether a row, or a packet of rows, is of metas or of payloads. The two are batched and settled apart.
public enum ReportKind: String, Sendable, CaseIterable, Hashable {
  case meta, payload

  // Asked for every row: by default the names are compared, and hashed.
  public static func == (one: Self, other: Self) -> Bool {
    switch (one, other) {
    case (.meta, .meta), (.payload, .payload): true
    case (.meta, .payload), (.payload, .meta): false
    }
  }
  public func hash(into hasher: inout Hasher) { hasher.combine(self == .payload) }
}
