import PrismBase
import PrismProtocol

/// A list on standard output. With `--json` each thing is a line of JSON; for people its members stand under their names.
final class Listing {
  /// Rows that are looked at before the first is printed: they decide how wide a column is.
  private static let rowsMax = 1000
  private static let widthMax = 48

  private let isJSON: Bool
  private let members: [Substring]
  private var rows: [[String]]
  private var widths: [Int]?
  private var output = LineOutput()

  /// - Parameter members: their paths, with spaces between them.
  init(_ line: Invocation, _ members: String) {
    isJSON = line.isJSON
    self.members = members.split(separator: " ")
    rows = [self.members.map(Self.title)]
  }

  /// `devices.waiting` is WAITING, `lastTime` is LAST.
  private static func title(_ path: Substring) -> String {
    let name = String(path.split(separator: ".").last ?? path)
    let unit = ["Time", "Seconds"].first { name.hasSuffix($0) && name.count > $0.count } ?? ""
    let words: [Character] = name.dropLast(unit.count).flatMap { $0.isUppercase ? [" ", $0] : [$0] }
    return String(words).uppercased()
  }

  /// The whole list. - Parameter total: of a list that may have been cut: it is said then. - Returns: the exit code.
  func all(_ things: JSONValue?, _ total: JSONValue? = nil) -> Int32 {
    for thing in things?.array ?? [] { add(thing) }
    let count = things?.array?.count ?? 0
    if let total = total?.int, total > count {
      complain("these are the first \(count) of \(total)")
    }
    return end()
  }

  /// - Parameter texts: of people, in place of its members.
  /// - Returns: false: nothing more can be written.
  @discardableResult
  func add(_ value: JSONValue, _ texts: [String?]? = nil) -> Bool {
    if isJSON { return output.add(OutputText.json(value.text)) }
    let cells = (texts ?? members.map { value.shown($0) }).map { ($0 ?? "").isEmpty ? "-" : $0!.printable }
    rows.append(cells.dropLast().map(Self.fitted) + cells.suffix(1))
    return rows.count <= Self.rowsMax || flush()
  }

  /// A sentence moves no column. An id stays whole: it is to be copied.
  private static func fitted(_ cell: String) -> String {
    cell.count > widthMax && cell.contains(" ") ? cell.prefix(widthMax - 1) + "…" : cell
  }

  /// - Returns: the exit code.
  func end() -> Int32 {
    if isJSON { return output.exitCode }
    if rows.count == 1, widths == nil {
      complain("there is nothing to list")
    } else {
      _ = flush()
    }
    return output.exitCode
  }

  private func flush() -> Bool {
    let widths =
      widths ?? members.indices.map { column in min(Self.widthMax, rows.map { $0[column].count }.max() ?? 0) }
    let lines = rows.map { row in
      let padded = zip(row.dropLast(), widths).map { text, width in
        text + String(repeating: " ", count: max(0, width - text.count))
      }
      return (padded + row.suffix(1)).joined(separator: "  ")
    }
    (self.widths, rows) = (widths, [])
    return lines.allSatisfy { output.add($0) }
  }
}
