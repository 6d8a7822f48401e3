package import PrismProtocol

/// A value of a configuration file, with its line. Text is kept as it was written. The key that it belongs to decides
/// the meaning of a plain scalar, so `1.10` can stay a version and `no` is never a boolean.
package struct YAMLNode: Sendable, Equatable {
  /// From 1; 0 for what came from no file.
  package var line: Int
  /// The content.
  package var value: Value

  /// A scalar, a sequence, a map, or a fault.
  package enum Value: Sendable, Equatable {
    case scalar(YAMLScalar)
    case sequence([YAMLNode])
    case mapping([YAMLEntry])
    /// A fault was found here and reported already; no further fault is reported for it.
    case refused
  }

  package init(line: Int, _ value: Value) { (self.line, self.value) = (line, value) }
}

/// A key of a map with its value.
package struct YAMLEntry: Sendable, Equatable {
  /// The key's text.
  package var key: String
  /// The line of the key, from 1.
  package var line: Int
  /// The value.
  package var node: YAMLNode
}

/// Text without structure.
package struct YAMLScalar: Sendable, Equatable {
  /// The text without quotes and escapes.
  package var text: String
  /// Whether it was written without quotes: only then can it be a number, a boolean or null.
  package var isPlain: Bool
  /// The text before `${NAME}` was replaced; nil where nothing was. Faults quote this: the environment may hold secrets.
  package var written: String?

  /// The type of a plain scalar in YAML 1.2's core schema (YAML 1.2.2, section 10.3.2).
  package enum Kind { case null, bool, number, string }

  /// The type that the text has.
  package var kind: Kind {
    guard isPlain, written == nil else { return .string }
    switch text {
    case "", "~", "null", "Null", "NULL": return .null
    case "true", "True", "TRUE", "false", "False", "FALSE": return .bool
    default: return Double(text) != nil && text.first?.isLetter != true ? .number : .string
    }
  }
}

extension YAMLNode {
  /// Whether the value is missing or null.
  package var isNull: Bool {
    guard case .scalar(let scalar) = value else { return false }
    return scalar.kind == .null
  }

  /// The same value, as remote configuration has it.
  package init(_ json: JSONValue) {
    switch json {
    case .null: self.init(line: 0, .scalar(YAMLScalar(text: "null", isPlain: true)))
    case .bool(let bool): self.init(line: 0, .scalar(YAMLScalar(text: String(bool), isPlain: true)))
    case .number(let text): self.init(line: 0, .scalar(YAMLScalar(text: text, isPlain: true)))
    case .string(let text): self.init(line: 0, .scalar(YAMLScalar(text: text, isPlain: false)))
    case .array(let elements): self.init(line: 0, .sequence(elements.map { YAMLNode($0) }))
    case .object(let members):
      self.init(line: 0, .mapping(members.map { YAMLEntry(key: $0.key, line: 0, node: YAMLNode($0.value)) }))
    }
  }

  /// The value for a fault: the text itself if it is short, or else its kind.
  package var shown: String {
    switch value {
    case .sequence: return "a list"
    case .mapping: return "a map"
    case .refused: return "refused"
    case .scalar(let scalar):
      if scalar.kind == .null { return "empty" }
      let text = (scalar.written ?? scalar.text).shownInFault
      return scalar.isPlain ? text : "\"\(text)\""
    }
  }
}

extension String {
  /// One line of at most 60 characters.
  package var shownInFault: String {
    let line = printable
    return line.count > 60 ? line.prefix(57) + "..." : line
  }
}

/// Why a text is not the YAML that prism takes, and on which line (from 1).
package struct YAMLFault: Error, Sendable, Equatable {
  /// The line in the file, from 1.
  package let line: Int
  /// The rule that is broken, and the remedy.
  package let message: String
  init(line: Int, _ message: String) { (self.line, self.message) = (line, message) }
}
