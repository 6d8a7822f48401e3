import Glibc
import PrismBase

/// Text that is cut to a width and then coloured, or not.
struct Paint: Sendable {
  /// Of SGR, ECMA-48. Never the only sign of anything: the words say it too.
  enum Colour: String {
    case bold = "1"
    case dim = "2"
    case red = "31"
    case green = "32"
    case yellow = "33"
  }

  let isOn: Bool

  /// On a terminal, unless `NO_COLOR` is set and not empty (no-color.org) or `TERM` is `dumb`.
  static let ofOutput = Paint(
    isOn: Terminal.outputIsTerminal && (Invocation.environment("NO_COLOR") ?? "").isEmpty
      && Invocation.environment("TERM") != "dumb")

  func callAsFunction(_ text: String, _ colour: Colour?) -> String {
    guard isOn, let colour else { return text }
    return "\u{1B}[\(colour.rawValue)m\(text)\u{1B}[0m"
  }
}
