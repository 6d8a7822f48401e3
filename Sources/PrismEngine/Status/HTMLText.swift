import PrismProtocol

/// Markup whose texts can hold anything: a namespace's name, a cause that a collector sent, a key of a file.
struct HTMLText {
  private(set) var text = ""

  /// - Parameter markup: of this program, with figures at most.
  mutating func raw(_ markup: String) { text += markup }

  mutating func add(_ before: String, _ text: String, _ after: String) {
    self.text += before + Self.escaped(text) + after
  }

  static func escaped(_ text: String) -> String {
    var result = ""
    for scalar in text.printable.unicodeScalars {
      switch scalar {
      case "&": result += "&amp;"
      case "<": result += "&lt;"
      case ">": result += "&gt;"
      case "\"": result += "&quot;"
      case "'": result += "&#39;"
      default: result.unicodeScalars.append(scalar)
      }
    }
    return result
  }
}
