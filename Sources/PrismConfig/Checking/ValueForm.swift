import PrismBase
import PrismProtocol

/// How a kind of value is read, what is allowed of it, how it is shown, and its JSON Schema: each written once.
package struct ValueForm<Value: Sendable>: Sendable {
  /// For the tables and after "must be": `1...30`, `true or false`.
  let allowed: String
  /// The unit of a number: `MiB`, `seconds`; "" for other values.
  var unit = ""
  let schema: JSONValue
  /// nil after a fault was reported.
  let read: @Sendable (YAMLNode, _ key: String, inout Checker) -> Value?
  let show: @Sendable (Value) -> JSONValue

  /// A value that a text says.
  /// - Parameters:
  ///   - allowed: the texts that `meaning` takes, in words.
  ///   - types: of the JSON Schema.
  ///   - isShown: false keeps a value out of faults: it may be a secret that went astray.
  ///   - meaning: nil refuses the text.
  static func text(
    _ allowed: String, types: JSONValue = ["string", "number"],
    isShown: @escaping @Sendable (String) -> Bool = { _ in true },
    meaning: @escaping @Sendable (String) -> Value?, show: @escaping @Sendable (Value) -> JSONValue
  ) -> Self {
    ValueForm(allowed: allowed, schema: ["type": types]) { node, key, checker in
      guard let text = checker.text(node, key, mustBe: allowed) else { return nil }
      if let value = meaning(text) { return value }
      if isShown(text) {
        checker.refuse(node, key, mustBe: allowed)
      } else {
        checker.fault(node.line, key, "must be \(allowed)")
      }
      return nil
    } show: {
      show($0)
    }
  }

  /// The same values, held in another way. - Parameter convert: nil refuses the value.
  func converted<Other>(
    _ convert: @escaping @Sendable (Value) -> Other?, back: @escaping @Sendable (Other) -> Value
  ) -> ValueForm<Other> {
    let (read, show, allowed) = (read, show, allowed)
    return ValueForm<Other>(allowed: allowed, unit: unit, schema: schema) { node, key, checker in
      guard let value = read(node, key, &checker) else { return nil }
      let other = convert(value)
      if other == nil { checker.refuse(node, key, mustBe: allowed) }
      return other
    } show: {
      show(back($0))
    }
  }

  /// The same values, of which one may be missing.
  var optional: ValueForm<Value?> {
    ValueForm<Value?>(allowed: allowed, unit: unit, schema: schema) { [read] node, key, checker in
      read(node, key, &checker).map { $0 }
    } show: { [show] in
      $0.map(show) ?? .null
    }
  }
}

extension ValueForm where Value == Bool {
  static var bool: Self {
    let allowed = "true or false"
    return ValueForm(allowed: allowed, schema: Schema.orEnvironment(["type": "boolean"])) { node, key, checker in
      guard let scalar = checker.scalar(node, key, mustBe: allowed) else { return nil }
      if scalar.isPlain || scalar.written != nil, let value = Bool(scalar.text) { return value }
      let meant = scalar.meantAsBool.map { "; write \($0)" + (scalar.isPlain ? "" : " without quotes") } ?? ""
      checker.fault(node.line, key, "is \(node.shown), must be \(allowed)\(meant)")
      return nil
    } show: {
      .bool($0)
    }
  }
}

extension YAMLScalar {
  /// YAML 1.1 read these as booleans, YAML 1.2 and prism do not: `no` is also Norway.
  fileprivate var meantAsBool: Bool? {
    switch text.lowercased() {
    case "yes", "y", "on", "true", "1": true
    case "no", "n", "off", "false", "0": false
    default: nil
    }
  }
}

extension ValueForm where Value: RawRepresentable & CaseIterable, Value.RawValue == String {
  static var choice: Self { choice(of: Array(Value.allCases)) }

  static func choice(of values: [Value]) -> Self {
    let names = values.map(\.rawValue)
    let allowed = names.dropLast().joined(separator: ", ") + " or " + names.last!
    let schema: JSONValue = ["enum": .array(names.map { .string($0) })]
    return ValueForm(allowed: allowed, schema: Schema.orEnvironment(schema)) { node, key, checker in
      guard let text = checker.text(node, key, mustBe: allowed) else { return nil }
      if names.contains(text), let value = Value(rawValue: text) { return value }
      let hint = NearestName.of(text, among: names).map { "; did you mean \($0)?" } ?? ""
      checker.fault(node.line, key, "is \(node.shown), must be \(allowed)\(hint)")
      return nil
    } show: {
      .string($0.rawValue)
    }
  }
}
