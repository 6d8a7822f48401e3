import PrismPacket
public import PrismProtocol
public import PrismStore

extension ClaimedPacket {
  /// The rows with their common information, as a receiver has them.
  public var rows: [[UInt8]] {
    guard let rows = try? MetaBlock(parsing: metas, rowsMax: .max).merged() else { return [] }
    return rows
  }

  public var rowTexts: [Substring] { rows.map { Substring(decoding: $0, as: UTF8.self) } }
}

extension JSONValue {
  /// An object's members by their keys: for two of which one has its common information behind its own members.
  public var sorted: [String] { (object ?? []).map { "\($0.key): \($0.value.text)" }.sorted() }
}
