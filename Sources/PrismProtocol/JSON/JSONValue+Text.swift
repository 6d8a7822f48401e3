import PrismBase

extension JSONValue {
  /// Compact: no white space, `/` not escaped, non-ASCII as it is but for control characters (`OutputText`).
  public var text: String { String(decoding: bytes, as: UTF8.self) }

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
      Self.appendList(open: 0x5B, close: 0x5D, elements, to: &result, indent: indent) { element, result, indent in
        element.append(to: &result, indent: indent)
      }
    case .object(let members):
      Self.appendList(open: 0x7B, close: 0x7D, members, to: &result, indent: indent) { member, result, indent in
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
      if index > 0 { result.append(0x2C) }
      if let indent { appendNewline(to: &result, indent: indent + 1) }
      appendElement(element, &result, indent.map { $0 + 1 })
    }
    if let indent, !elements.isEmpty { appendNewline(to: &result, indent: indent) }
    result.append(close)
  }

  private static func appendNewline(to result: inout [UInt8], indent: Int) {
    result.append(0x0A)
    result.append(contentsOf: repeatElement(0x20, count: 2 * indent))
  }

  /// `text` as a JSON string, with its quotes.
  public static func append(quoted text: String, to result: inout [UInt8]) {
    result.append(0x22)
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"", "\\": result += [0x5C, UInt8(scalar.value)]
      case "\n": result += [0x5C, 0x6E]
      case "\r": result += [0x5C, 0x72]
      case "\t": result += [0x5C, 0x74]
      case _ where OutputText.isControl(scalar): result += OutputText.jsonEscape(scalar).utf8
      case _ where scalar.isASCII: result.append(UInt8(scalar.value))
      default: result += String(scalar).utf8
      }
    }
    result.append(0x22)
  }
}
