import PrismProtocol
import PrismSQLite

/// Adds to a crash the reports and log lines that came before it of the same app, or of the same unit (docs/sessions.md). They go into
/// its meta, beside its own: a payload may be sealed already.
struct Breadcrumbs: PlainOperations {
  static let key = "breadcrumbs"
  /// The most lines, and rows of each priority that one crash looks at.
  private static let (linesMax, rowsLookedAtMax) = (50, 2000)
  private static let textBytesMax = 200
  /// Members that say in words what a report is about, the best first.
  private static let words = ["MESSAGE", "message", "body", "log", "text", "name", "reason"]
  /// Begin the members of the common information, which a row may carry itself.
  private static let common = ["SYS_", "APP_", "CANDLE_", "CREATE_TIME", "TRIGGER"]

  private typealias Line = (sequence: Int64, json: JSONValue)

  let transaction: StoreTransaction

  /// The batch with lines in its crashes, as far as their metas have room.
  func added(to batch: ReportBatch) throws(SQLiteError) -> ReportBatch {
    guard batch.types.contains(where: { $0.priority == .crash }),
      let namespace = state.names.number(of: batch.namespace)
    else { return batch }
    var result = batch
    for (index, row) in batch.rows.enumerated() where batch.types[row.type].priority == .crash {
      var body = Array(batch.arena[row.body])
      guard let same = sender(body, batch.context.members) else { continue }
      let own = Enriching.value(Self.key, in: body)?.array ?? []
      if !own.isEmpty { body = Self.withoutOwn(body) }
      let used = row.metaBytes - row.body.count + body.count
      let added = Self.member(merged(own, try lines(of: same, namespace)), bytesMax: Limits.metaBytesMax - used)
      guard !added.isEmpty else { continue }
      let start = result.arena.count
      result.arena += body
      if !body.isEmpty { result.arena.append(UInt8(ascii: ",")) }
      result.arena += added
      result.rows[index].body = start..<result.arena.count
      result.rows[index].metaBytes = used + added.count + 1
    }
    return result
  }

  /// The notes that the program made itself, and those of the store, by their time.
  private func merged(_ own: [JSONValue], _ stored: [JSONValue]) -> [JSONValue] {
    guard !own.isEmpty else { return stored }
    let all = (stored + own.suffix(Self.linesMax)).enumerated()
    let time = { (line: JSONValue) in line["time"]?.int ?? 0 }
    return all.sorted { (time($0.element), $0.offset) < (time($1.element), $1.offset) }.map(\.element)
  }

  private static func withoutOwn(_ body: [UInt8]) -> [UInt8] {
    let members = (try? JSONValue(parsingMembers: body))?.object ?? []
    return Array(JSONValue.object(members.filter { $0.key != key }).bytes.dropFirst().dropLast())
  }

  /// The member that the reports of a crash's app share with it.
  private func sender(_ body: [UInt8], _ context: [UInt8]) -> (key: String, value: String)? {
    if let app = Enriching.value("APP_NAME", in: body)?.string { return ("APP_NAME", app) }
    for key in ["SYS_PEER_UNIT", "APP_NAME"] {
      if let value = Enriching.value(key, in: context)?.string { return (key, value) }
    }
    return nil
  }

  /// The newest ones, ascending.
  private func lines(of same: (key: String, value: String), _ namespace: Int) throws(SQLiteError) -> [JSONValue] {
    let queues = state.queues(of: namespace).filter { $0.kind == .meta }
    var (found, verdicts): ([Line], [Int64: Bool]) = ([], [:])
    for priority in [Priority.realtime, .rest, .kept] {
      for queue in queues { try walk(queue, priority, same, &verdicts, into: &found) }
    }
    return found.sorted { $0.sequence < $1.sequence }.suffix(Self.linesMax).map(\.json)
  }

  private func walk(
    _ queue: QueueID, _ priority: Priority, _ same: (key: String, value: String), _ verdicts: inout [Int64: Bool],
    into found: inout [Line]
  ) throws(SQLiteError) {
    var (lines, looked) = (0, 0)
    for place in state[queue].segments.list.indices.reversed() {
      let table = RowTable(queue, number: state[queue].segments[place].number)
      let rows = try transaction.statement(.rows(.walkBack, table)).bind([":end": priority.idEnd])
      defer { rows.reset() }
      while lines < Self.linesMax, looked < Self.rowsLookedAtMax, let row = try rows.next(of: StoredRow.Column.self) {
        let stored = StoredRow(row, hasPayload: false)
        guard stored.id > PriorityValues.bases[priority] else { break }
        looked += 1
        let body = Array(stored.body)
        guard StoredRow.isWhole(stored, row), try isOf(same, stored, body, &verdicts, queue.namespace),
          let type = state.names.types[stored.type]
        else { continue }
        lines += 1
        found.append((RowID(value: stored.id).sequence, Self.line(stored.createdTime, type, body)))
      }
    }
  }

  private func isOf(
    _ same: (key: String, value: String), _ row: StoredRow, _ body: [UInt8], _ verdicts: inout [Int64: Bool],
    _ namespace: Int
  ) throws(SQLiteError) -> Bool {
    let isSame = { (value: JSONValue?) in value?.string?.utf8.elementsEqual(same.value.utf8) ?? false }
    if let own = Enriching.value(same.key, in: body) { return isSame(own) }
    guard row.context > 0 else { return false }
    if let known = verdicts[row.context] { return known }
    let members = try transaction.members(ofContext: row.context, namespace: namespace) ?? []
    let verdict = isSame(Enriching.value(same.key, in: members))
    verdicts[row.context] = verdict
    return verdict
  }

  private static func line(_ time: Int64, _ type: ReportType, _ body: [UInt8]) -> JSONValue {
    let meta = (try? JSONValue(parsingMembers: body)) ?? .null
    let said = words.lazy.compactMap { meta[$0]?.string }.first { !$0.isEmpty }
    let rest = (meta.object ?? []).filter { member in !common.contains { member.key.hasPrefix($0) } }
    let text = said ?? JSONValue.object(rest).text
    return ["time": .int(time), "type": .string(type.text), "text": .string(text.cut(atBytes: textBytesMax))]
  }

  /// `"breadcrumbs":[…]` with the newest lines that fit; empty if no line does.
  private static func member(_ lines: [JSONValue], bytesMax: Int) -> [UInt8] {
    let head = Array("\"\(key)\":[".utf8)
    var (texts, bytes): ([[UInt8]], Int) = ([], head.count + 2)
    for line in lines.reversed() {
      let text = line.bytes
      guard bytes + text.count + 1 <= bytesMax else { break }
      bytes += text.count + 1
      texts.append(text)
    }
    guard !texts.isEmpty else { return [] }
    return head + texts.reversed().joined(separator: [UInt8(ascii: ",")]) + [UInt8(ascii: "]")]
  }
}
