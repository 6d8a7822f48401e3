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
