import Glibc

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

  /// On a terminal, unless `NO_COLOR` says no or `TERM` is `dumb`.
  static let ofOutput = Paint(
    isOn: Terminal.outputIsTerminal && getenv("NO_COLOR") == nil && Invocation.environment("TERM") != "dumb")

  func callAsFunction(_ text: String, _ colour: Colour?) -> String {
    guard isOn, let colour else { return text }
    return "\u{1B}[\(colour.rawValue)m\(text)\u{1B}[0m"
  }
}

extension String {
  /// What a client or a collector said, without anything that a terminal takes for a command.
  var printable: String {
    var result = ""
    for scalar in unicodeScalars {
      let isControl = scalar.value < 0x20 || (0x7F..<0xA0).contains(scalar.value)
      // Scalars that turn the direction of writing make a line look like another one.
      let isTurning = (0x202A...0x202E).contains(scalar.value) || (0x2066...0x2069).contains(scalar.value)
      if isControl || isTurning {
        result += "\\u{\(String(scalar.value, radix: 16))}"
      } else {
        result.unicodeScalars.append(scalar)
      }
    }
    return result
  }
}
