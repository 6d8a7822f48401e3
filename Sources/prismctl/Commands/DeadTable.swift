import PrismProtocol

/// `prismctl dead list` for people: a letter in a line, and below it whose it is and what the collector said.
struct DeadTable {
  let text: String

  /// - Parameter columns: of the terminal; nil: there is none, so that no line is broken.
  init(_ letters: [JSONValue], columns: Int?) {
    guard !letters.isEmpty else {
      text = "no dead letters"
      return
    }
    let header = Self.line("ID", "NAMESPACE", "KIND", "TYPE", "BYTES", "SINCE")
    text = ([header] + letters.flatMap { Self.lines($0, columns) }).joined(separator: "\n")
  }

  private static func lines(_ letter: JSONValue, _ columns: Int?) -> [String] {
    func word(_ key: String) -> String { (letter[key]?.string ?? "?").printable }
    let (status, attempts) = (letter["status"]?.int ?? 0, letter["attempts"]?.int ?? 0)
    let said = word("message").isEmpty ? "" : ": \(word("message"))"
    let cause = "  answered \(status)\(said)"
    let user = letter["userId"]?.int.map { " of user \($0)" } ?? ""
    let whose = "  report \(word("reportId"))\(user), \("attempt".counted(attempts))"
    let first = line(
      String(letter["id"]?.int ?? 0), word("namespace"), word("kind"), word("type"),
      StatusTable.bytes(letter["bytes"]?.int ?? 0), String(word("time").prefix(19)) + "Z")
    return [first] + whose.wrapped(columns, indent: 2) + cause.wrapped(columns, indent: 2)
  }

  /// 79 of a terminal's 80 columns.
  private static func line(
    _ id: String, _ namespace: String, _ kind: String, _ type: String, _ bytes: String, _ since: String
  ) -> String {
    id.padded(8) + namespace.fitted(17) + kind.padded(8) + type.fitted(17) + bytes.paddedLeft(7) + "  " + since
  }
}
