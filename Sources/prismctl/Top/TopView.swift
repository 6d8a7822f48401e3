/// The part of the namespaces that `prismctl top` shows: keys change it.
struct TopView: Equatable {
  /// Rows above the first that is shown.
  var offset = 0
  /// A part of the name, in lower case; empty: all.
  private(set) var filter = ""
  /// Letters go to the filter.
  private(set) var isTyping = false
  private(set) var isOver = false
  /// The text about keys and columns is in the place of the rows.
  private(set) var isHelping = false
  /// nil: by name, and where not all fit, those with the most to tell first.
  private(set) var order: Order?

  /// By the columns, in their order; the largest first.
  enum Order: Int, CaseIterable {
    case waiting, dead, oldest, stored, delivered, sent
  }

  static let help = [
    "s       sorts by the next column, the largest first", "/       filters by a part of the name",
    "arrows  scroll, as do space, b, g and G", "q       quits", "",
    "WAITING rows that are not delivered yet; OLDEST: for how long",
    "DEAD    rows that the collector refused for good", "IN/S    reports that were stored, a second",
    "OUT/S   reports that were delivered, a second", "SENT/S  bytes to the collector, a second",
  ]

  static let filterMax = 64

  /// - Parameter bytes: as the terminal sent them in one go.
  /// - Parameter page: rows that are shown at once.
  mutating func take(_ bytes: some Sequence<UInt8>, page: Int) {
    var rest = Array(bytes)[...]
    // An end of input is the terminal's end.
    if rest.isEmpty { isOver = true }
    while !rest.isEmpty && !isOver {
      if let known = Self.sequences.first(where: { rest.starts(with: $0.bytes) }) {
        rest = rest.dropFirst(known.bytes.count)
        move(known.move, page: page)
      } else if let byte = rest.popFirst() {
        isTyping ? type(byte) : press(byte, page: page)
      }
    }
  }

  func shows(_ name: String) -> Bool { filter.isEmpty || name.lowercased().contains(filter) }

  /// The last line of the screen.
  var footer: String {
    if isTyping { return "filter: \(filter)_  (Enter keeps it, Esc clears it)" }
    if !filter.isEmpty { return "only names with `\(filter)`: / changes it, Esc clears it; arrows scroll; q quits" }
    if isHelping { return "any key leads back" }
    return "q quits, ? helps, s sorts, / filters, arrows scroll"
  }

  // MARK: Keys

  private enum Move { case up, down, pageUp, pageDown, first, last }

  /// As terminals send them (ECMA-48, xterm).
  private static let sequences: [(bytes: [UInt8], move: Move)] = [
    ("\u{1B}[A", Move.up), ("\u{1B}OA", .up), ("\u{1B}[B", .down), ("\u{1B}OB", .down), ("\u{1B}[5~", .pageUp),
    ("\u{1B}[6~", .pageDown), ("\u{1B}[H", .first), ("\u{1B}[1~", .first), ("\u{1B}[F", .last), ("\u{1B}[4~", .last),
  ].map { (Array($0.0.utf8), $0.1) }

  private mutating func move(_ move: Move, page: Int) {
    switch move {
    case .up: offset = max(0, offset - 1)
    case .down: offset += 1
    case .pageUp: offset = max(0, offset - page)
    case .pageDown: offset += page
    case .first: offset = 0
    case .last: offset = Int(Int32.max)
    }
  }

  private mutating func press(_ byte: UInt8, page: Int) {
    if isHelping && byte != Key.controlC {
      isHelping = false
      return
    }
    switch byte {
    // Ctrl-C and Ctrl-D come as keys.
    case Key.controlC, Key.controlD, UInt8(ascii: "q"), UInt8(ascii: "Q"): isOver = true
    case UInt8(ascii: "j"): move(.down, page: page)
    case UInt8(ascii: "k"): move(.up, page: page)
    case UInt8(ascii: " "): move(.pageDown, page: page)
    case UInt8(ascii: "b"): move(.pageUp, page: page)
    case UInt8(ascii: "g"): move(.first, page: page)
    case UInt8(ascii: "G"): move(.last, page: page)
    case UInt8(ascii: "/"): isTyping = true
    case UInt8(ascii: "?"), UInt8(ascii: "h"): isHelping = true
    case UInt8(ascii: "s"): (order, offset) = (Order(rawValue: (order?.rawValue ?? -1) + 1), 0)
    case Key.escape: (filter, offset) = ("", 0)
    default: break
    }
  }

  private mutating func type(_ byte: UInt8) {
    offset = 0
    switch byte {
    case Key.controlC, Key.controlD: isOver = true
    case UInt8(ascii: "\r"), UInt8(ascii: "\n"): isTyping = false
    case Key.escape: (filter, isTyping) = ("", false)
    case Key.delete, Key.backspace: _ = filter.popLast()
    case UInt8(ascii: "!")...UInt8(ascii: "~") where filter.count < Self.filterMax:
      filter += String(UnicodeScalar(byte)).lowercased()
    default: break
    }
  }
}

/// The bytes that a terminal sends for keys without a character.
private enum Key {
  static let controlC: UInt8 = 3, controlD: UInt8 = 4, backspace: UInt8 = 8, escape: UInt8 = 27, delete: UInt8 = 127
}
