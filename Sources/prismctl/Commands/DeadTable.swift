import PrismBase
import PrismControl
import PrismProtocol

/// `prismctl dead list` for people: a letter in a line, and below it whose it is and what the collector said.
struct DeadTable {
  let text: String

  /// - Parameter columns: of the terminal; nil without a terminal, so that no line is broken.
  init(_ letters: [DeadLetterReport], _ records: [RefusedRecordReport] = [], columns: Int?) {
    guard !letters.isEmpty || !records.isEmpty else {
      text = "no dead letters"
      return
    }
    let header = Self.line("ID", "NAMESPACE", "KIND", "TYPE", "BYTES", "SINCE")
    let lines = letters.flatMap { Self.lines($0, columns) } + records.flatMap { Self.lines($0, columns) }
    text = ([header] + lines).joined(separator: "\n")
  }

  /// A refused change has no number: the next change of its record takes its place.
  private static func lines(_ record: RefusedRecordReport, _ columns: Int?) -> [String] {
    let cause = "  refused" + (record.message.isEmpty ? "" : ": \(record.message)")
    let whose =
      "  \(record.change) of record \(record.id), version \(record.version); change the record to send it again"
    let first = line(
      "-", record.namespace, "records", record.table, StatusTable.bytes(record.bytes),
      String(record.time.prefix(19)) + "Z")
    return [first] + whose.wrapped(columns, indent: 2) + cause.wrapped(columns, indent: 2)
  }

  private static func lines(_ letter: DeadLetterReport, _ columns: Int?) -> [String] {
    let cause = "  answered \(letter.status)" + (letter.message.isEmpty ? "" : ": \(letter.message)")
    let user = letter.userId.map { " of user \($0)" } ?? ""
    let whose = "  report \(letter.reportId)\(user), \("attempt".counted(letter.attempts))"
    let first = line(
      String(letter.id), letter.namespace, letter.kind, letter.type, StatusTable.bytes(letter.bytes),
      String(letter.time.prefix(19)) + "Z")
    return [first] + whose.wrapped(columns, indent: 2) + cause.wrapped(columns, indent: 2)
  }

  /// 79 of a terminal's 80 columns.
  private static func line(
    _ id: String, _ namespace: String, _ kind: String, _ type: String, _ bytes: String, _ since: String
  ) -> String {
    id.padded(8) + namespace.fitted(17) + kind.padded(8) + type.fitted(17) + bytes.paddedLeft(7) + "  " + since
  }
}
