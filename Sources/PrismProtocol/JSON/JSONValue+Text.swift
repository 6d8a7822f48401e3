import PrismBase

extension JSONValue {
  /// Compact: no white space, `/` not escaped, non-ASCII as it is but for control characters (`OutputText`).
  public var text: String { String(decoding: bytes, as: UTF8.self) }

  /// The value as compact JSON in UTF-8.
  public var bytes: [UInt8] {
    var result: [UInt8] = []
    append(to: &result)
    return result
  }

  /// Indented by two spaces a level, for people.
  public var prettyText: String {
    var result: [UInt8] = []
    append(to: &result, indent: 0)
    return String(decoding: result, as: UTF8.self)
  }

  /// - Parameter indent: levels; nil for the compact form.
  private func append(to result: inout [UInt8], indent: Int? = nil) {
    switch self {
    case .null: result += "null".utf8
    case .bool(let value): result += (value ? "true" : "false").utf8
    case .number(let text): result += text.utf8
    case .string(let text): JSONValue.append(quoted: text, to: &result)
    case .array(let elements):
      Self.appendList(open: UInt8(ascii: "["), close: UInt8(ascii: "]"), elements, to: &result, indent: indent) {
        element, result, indent in
        element.append(to: &result, indent: indent)
      }
    case .object(let members):
      Self.appendList(open: UInt8(ascii: "{"), close: UInt8(ascii: "}"), members, to: &result, indent: indent) {
        member, result, indent in
        JSONValue.append(quoted: member.key, to: &result)
        result += indent == nil ? ":".utf8 : ": ".utf8
        member.value.append(to: &result, indent: indent)
      }
    }
  }

  private static func appendList<Element>(
    open: UInt8, close: UInt8, _ elements: [Element], to result: inout [UInt8], indent: Int?,
    _ appendElement: (Element, inout [UInt8], Int?) -> Void
  ) {
    result.append(open)
    for (index, element) in elements.enumerated() {
      if index > 0 { result.append(UInt8(ascii: ",")) }
      if let indent { appendNewline(to: &result, indent: indent + 1) }
      appendElement(element, &result, indent.map { $0 + 1 })
    }
    if let indent, !elements.isEmpty { appendNewline(to: &result, indent: indent) }
    result.append(close)
  }

  private static func appendNewline(to result: inout [UInt8], indent: Int) {
    result.append(UInt8(ascii: "\n"))
    result.append(contentsOf: repeatElement(UInt8(ascii: " "), count: 2 * indent))
  }

  /// `text` as a JSON string, with its quotes.
  public static func append(quoted text: String, to result: inout [UInt8]) {
    result.append(UInt8(ascii: "\""))
    defer { result.append(UInt8(ascii: "\"")) }
    let isPlain = text.utf8.allSatisfy { $0.isPrintable && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "\\") }
    guard !isPlain else {
      result += text.utf8
      return
    }
    for scalar in text.unicodeScalars {
      if let letter = letter(of: scalar) {
        result.append(UInt8(ascii: "\\"))
        result.append(letter)
      } else if OutputText.isControl(scalar) {
        result += "\\u".utf8
        for shift in [12, 8, 4, 0] { result.append(Hex.digit(of: UInt8(truncatingIfNeeded: scalar.value >> shift))) }
      } else {
        result += scalar.utf8
      }
    }
  }

  /// That follows a backslash, where the escape has one.
  private static func letter(of scalar: Unicode.Scalar) -> UInt8? {
    switch scalar {
    case "\"", "\\": UInt8(scalar.value)
    case "\n": UInt8(ascii: "n")
    case "\r": UInt8(ascii: "r")
    case "\t": UInt8(ascii: "t")
    default: nil
    }
  }

  /// Bytes of a scalar within a JSON string, as `append(quoted:to:)` writes it.
  package static func escapedBytes(_ scalar: Unicode.Scalar) -> Int {
    if letter(of: scalar) != nil { return 2 }
    return OutputText.isControl(scalar) ? 6 : UTF8.width(scalar)
  }
}
