// The answers to requests about records (docs/records.md).
extension AnswerText {
  /// The answer, once its commit holds.
  public static func record(_ answer: RecordAnswer) -> [UInt8] {
    switch answer {
    case .stored(let version):
      var members: [JSONValue.Member] = [.init("status", "stored")]
      if let version { members.append(.init("version", .int(version))) }
      return JSONValue.object(members).bytes + [UInt8(ascii: "\n")]
    case .record(let record):
      guard let record else { return Array("{\"record\":null}\n".utf8) }
      var line = Array(#"{"record":"#.utf8)
      append(record, to: &line)
      return line + Array("}\n".utf8)
    case .list(let records, let generation, let isMore):
      var line: [UInt8] = []
      line.reserveCapacity(records.reduce(64) { $0 + $1.textBytes })
      line += #"{"records":["#.utf8
      for (index, record) in records.enumerated() {
        if index > 0 { line.append(UInt8(ascii: ",")) }
        append(record, to: &line)
      }
      line += "],\"generation\":\(generation),\"more\":\(isMore)}\n".utf8
      return line
    case .watching(let namespace, let table, let generation):
      return line("watch", namespace, table, [.init("generation", .int(generation))])
    case .refused(let refusal): return refused(refusal)
    }
  }

  /// A table that the connection watches was changed.
  public static func changed(_ change: RecordTableChange) -> [UInt8] {
    var members: [JSONValue.Member] = [.init("generation", .int(change.generation))]
    if let ids = change.ids { members.append(.init("ids", .array(ids.map { .string($0.text) }))) }
    return line("changed", change.namespace, change.table, members)
  }

  /// A table is watched no more, because it may not be read any more.
  public static func ended(_ namespace: NamespaceName, _ table: RecordTableName, _ refusal: Refusal) -> [UInt8] {
    line(
      "ended", namespace, table,
      [.init("code", .string(refusal.code.rawValue)), .init("message", .string(refusal.message))])
  }

  private static func line(
    _ key: String, _ namespace: NamespaceName, _ table: RecordTableName, _ members: [JSONValue.Member]
  ) -> [UInt8] {
    let place: [JSONValue.Member] = [.init("namespace", .string(namespace.text)), .init("table", .string(table.text))]
    return JSONValue.object([.init(key, .object(place + members))]).bytes + [UInt8(ascii: "\n")]
  }

  private static func append(_ record: StoredRecord, to line: inout [UInt8]) {
    line += Array(#"{"id":"#.utf8)
    JSONValue.append(quoted: record.id.text, to: &line)
    if let serverID = record.serverID {
      line += Array(#","serverId":"#.utf8)
      JSONValue.append(quoted: serverID.text, to: &line)
    }
    line += Array(#","fields":"#.utf8)
    line += record.fields
    line += Array(#","version":\#(record.version),"changedTime":\#(record.changedTime),"state":"#.utf8)
    JSONValue.append(quoted: record.refusal == nil ? record.state.name : "refused", to: &line)
    if let refusal = record.refusal {
      line += Array(#","message":"#.utf8)
      JSONValue.append(quoted: refusal, to: &line)
    }
    line += Array("}".utf8)
  }
}
