import PrismProtocol

/// A value of a configuration file, with the line it stands on. Text is kept as it was written: what a plain scalar
/// means is decided by the key that it belongs to, so that `1.10` can stay a version and `no` is never a boolean.
package struct YAMLNode: Sendable, Equatable {
  /// From 1; 0 for what came from no file.
  package var line: Int
  package var value: Value

  package enum Value: Sendable, Equatable {
    case scalar(YAMLScalar)
    case sequence([YAMLNode])
    case mapping([YAMLEntry])
    /// A fault was found here and told already; nothing more is said about it.
    case refused
  }

  package init(line: Int, _ value: Value) { (self.line, self.value) = (line, value) }
}

package struct YAMLEntry: Sendable, Equatable {
  package var key: String
  package var line: Int
  package var node: YAMLNode
}

package struct YAMLScalar: Sendable, Equatable {
  package var text: String
  /// Written without quotes: numbers, booleans and null are told from strings by this.
  package var isPlain: Bool
  /// The text before `${NAME}` was replaced; nil where nothing was. Faults quote this: the environment may hold secrets.
  package var written: String?

  package init(text: String, isPlain: Bool, written: String? = nil) {
    (self.text, self.isPlain, self.written) = (text, isPlain, written)
  }

  /// What a plain scalar is in YAML 1.2's core schema (YAML 1.2.2, section 10.3.2).
  package enum Kind { case null, bool, number, string }

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

  /// What stands here, for a fault: the value itself where it is short, its kind otherwise.
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
