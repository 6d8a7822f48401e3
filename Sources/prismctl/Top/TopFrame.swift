import PrismControl
import PrismProtocol

/// One screen of `prismctl top`, for any size.
struct TopFrame {
  struct Size: Equatable {
    var columns: Int, rows: Int
  }

  private typealias Cell = (text: String, colour: Paint.Colour?)

  /// At most as many lines as the screen, and no line wider than it.
  let lines: [String]
  /// The most rows that can be above the first shown.
  let offsetMax: Int

  /// - Parameter trouble: why the newest figures are old; nil: they are not.
  /// - Parameter hasBlocks: the terminal shows Unicode's block elements.
  /// - Parameter view: which namespaces, from which row on.
  init(
    _ history: TopHistory, trouble: String?, size: Size, paint: Paint, hasBlocks: Bool, view: TopView = TopView(),
    footer: String
  ) {
    let status = history.status ?? StatusReport()
    let namespaces = NamedValues(status.namespaces.filter { view.shows($0.name) })
    let columns = Columns(size, names: namespaces.map(\.name))
    var top: [[Cell]] = StatusTable.daemonLines(status).map { [($0, .bold)] }
    top += trouble?.wrapped(size.columns).map { [($0, .red)] } ?? []
    let header = view.isHelping ? "KEYS AND COLUMNS" : columns.header(view.order)
    top += [[("", nil)], [(header, .dim)]]
    let said: [(String, Paint.Colour?)] =
      StatusTable.storeNotes(status.store).map { ($0, .red) }
      + namespaces.flatMap { StatusTable.notes($0.name, $0.value) }.map { ($0, .yellow) }
      + namespaces.flatMap { StatusTable.rings($0.name, $0.value) }.map { ($0, nil) }
    let notes = said.flatMap { note in note.0.wrapped(size.columns).map { [($0, note.1)] as [Cell] } }
    let room = max(1, size.rows - top.count - 2)
    let notesShown = notes.prefix(max(0, min(notes.count, room / 2)))
    let rowsMax = max(1, room - notesShown.count)
    let isCrowded = namespaces.count > rowsMax
    let help: [[Cell]] = TopView.help.map { [($0, nil)] }
    let all =
      view.isHelping
      ? help : Self.rows(namespaces, history, by: view.order, isCrowded: isCrowded, columns, hasBlocks: hasBlocks)
    let rows = Self.window(all, rowsMax, view)
    offsetMax = max(0, all.count - max(1, rowsMax - 1))
    let bottom: [[Cell]] = (notesShown.isEmpty ? [] : [[("", nil)]]) + notesShown + [[(footer, .dim)]]
    lines = (top + rows + bottom).prefix(size.rows).map { Self.line($0, size.columns, paint) }
  }

  /// The rows that fit, and in the place of the last one how many do not.
  private static func window(_ rows: [[Cell]], _ rowsMax: Int, _ view: TopView) -> [[Cell]] {
    guard !rows.isEmpty else { return [[(view.filter.isEmpty ? "no namespace" : "no namespace has that name", .dim)]] }
    guard rows.count > rowsMax else { return rows }
    let shown = max(1, rowsMax - 1)
    let above = max(0, min(view.offset, rows.count - shown))
    let below = rows.count - above - shown
    let hidden = above == 0 ? "… \(below) more, quieter" : "… \(above) above, \(below) below"
    return Array(rows[above..<(above + shown)]) + [[(hidden, .dim)]]
  }

  // MARK: Columns

  /// Those that fit as a whole, and what is left for names and the sparkline.
  private struct Columns {
    static let titles = ["WAITING", "DEAD", "OLDEST", "IN/S", "OUT/S", "SENT/S"]
    static let widths = [9, 7, 8, 8, 8, 8]
    private static let nameMin = 13, sparkMin = 8, sparkWanted = 60

    let widths: ArraySlice<Int>
    let name: Int
    /// 0: there is no room for one.
    let spark: Int

    init(_ size: Size, names: [String]) {
      var left = size.columns - Self.nameMin
      widths = Self.widths.prefix { width in
        left -= width
        return left >= 0
      }
      let figures = widths.reduce(0, +)
      let longest = (names.map(\.count).max() ?? 0) + 1
      name = max(Self.nameMin, min(longest, size.columns - figures - 1 - Self.sparkWanted))
      let rest = size.columns - figures - name - 1
      spark = rest >= Self.sparkMin ? min(rest, TopHistory.secondsKept) : 0
    }

    func header(_ order: TopView.Order?) -> String {
      let titles = Self.titles.enumerated().map { $0 == order?.rawValue ? $1 + "↓" : $1 }
      return "NAMESPACE".padded(name) + zip(titles, widths).map { $0.paddedLeft($1) }.joined()
        + (spark > 0 ? " IN/S, \(spark) s" : "")
    }
  }

  /// The figure by which rows are sorted; nil: how much there is to tell.
  private static func measure(
    _ order: TopView.Order?, _ namespace: NamespaceReport, _ rates: TopHistory.Rates?
  ) -> Double {
    switch order {
    case .waiting: Double(namespace.unsentRows)
    case .dead: Double(namespace.deadRows)
    case .oldest: namespace.unsentRows > 0 ? Double(namespace.oldestAgeSeconds) : -1
    case .stored: rates?.stored ?? 0
    case .delivered: rates?.delivered ?? 0
    case .sent: rates?.sentBytes ?? 0
    case nil: (rates?.stored ?? 0) + (rates?.delivered ?? 0) + Double(namespace.unsentRows)
    }
  }

  /// The largest first, then by name. Without an order by name, unless not all fit.
  private static func rows(
    _ namespaces: NamedValues<NamespaceReport>, _ history: TopHistory, by order: TopView.Order?, isCrowded: Bool,
    _ columns: Columns, hasBlocks: Bool
  ) -> [[Cell]] {
    let value = { (entry: NamedValues<NamespaceReport>.Element) -> Double in
      measure(order, entry.value, history.rates[entry.name])
    }
    let isSorted = order != nil || isCrowded
    let ordered = isSorted ? namespaces.sorted { (value($1), $0.name) < (value($0), $1.name) } : Array(namespaces)
    return ordered.map { row($0.name, $0.value, history.rates[$0.name], columns, hasBlocks: hasBlocks) }
  }

  private static func row(
    _ name: String, _ namespace: NamespaceReport, _ rates: TopHistory.Rates?, _ columns: Columns, hasBlocks: Bool
  ) -> [Cell] {
    let (waiting, dead) = (namespace.unsentRows, namespace.deadRows)
    let isAlarming = namespace.circuitIsOpen || namespace.isHeld
    let figures: [Cell] = [
      (figure(Double(waiting)), isAlarming && waiting > 0 ? .yellow : nil),
      (figure(Double(dead)), dead > 0 ? .red : nil),
      (waiting > 0 ? StatusTable.duration(namespace.oldestAgeSeconds) : "-", nil),
      (rates.map { figure($0.stored) } ?? "-", nil), (rates.map { figure($0.delivered) } ?? "-", nil),
      (rates.map { StatusTable.bytes(Int($0.sentBytes)) } ?? "-", nil),
    ]
    let spark = Sparkline(rates?.storedBefore ?? [], columns: columns.spark, hasBlocks: hasBlocks).text
    return [(name.fitted(columns.name), isAlarming ? .yellow : nil)]
      + zip(figures, columns.widths).map { ($0.0.text.paddedLeft($0.1), $0.0.colour) } + [(" " + spark, .green)]
  }

  /// `950`, `12.3k`, `1.2M`: in powers of 1000.
  static func figure(_ value: Double) -> String {
    var (value, unit) = (value, 0)
    while value >= 9999.5 && unit < 4 { (value, unit) = (value / 1000, unit + 1) }
    if unit == 0 && (value == value.rounded() || value >= 100) { return String(Int(value.rounded())) }
    let tenths = Int((value * 10).rounded())
    return "\(tenths / 10).\(tenths % 10)" + ["", "k", "M", "G", "T"][unit]
  }

  private static func line(_ cells: [Cell], _ columns: Int, _ paint: Paint) -> String {
    var (line, left) = ("", columns)
    for cell in cells where left > 0 {
      let text = String(cell.text.prefix(left))
      left -= text.count
      line += paint(text, text.isEmpty ? nil : cell.colour)
    }
    return line
  }
}

/// A row of bars, the newest at the right end; the highest of them fills its cell.
struct Sparkline {
  let text: String

  /// - Parameter hasBlocks: Unicode's block elements, else ASCII.
  init(_ values: [Double], columns: Int, hasBlocks: Bool) {
    let shown = values.suffix(columns)
    let most = shown.max() ?? 0
    let steps = Array(hasBlocks ? "▁▂▃▄▅▆▇█" : "._-=+*%#")
    let bars = shown.map { value -> Character in
      guard value > 0, most > 0 else { return " " }
      return steps[min(steps.count - 1, Int(value / most * Double(steps.count)))]
    }
    text = String(repeating: " ", count: columns - bars.count) + String(bars)
  }
}
